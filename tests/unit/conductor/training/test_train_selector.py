"""A training run of the selection that is killed goes on as if nothing had been."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conductor.training.selector_checkpoints import CheckpointUnreadable, read_tensors, write_tensors
from conductor.training.train_selector import Config, train
from tests.unit.conductor.training.planning_data import write_planning_data

_STEPS = 20
_KILLED_AT = (3, 8, 13)
_CONFIG = Config(steps=_STEPS, batch=8, own_batch=4, own_tools=12, warmup=2, written=False, average=0.5)
_RUN = """
import sys
from pathlib import Path
import torch
from conductor.training.train_selector import Config, train
torch.set_num_threads(1)
config = Config(steps={steps}, batch=8, own_batch=4, own_tools=12, warmup=2, written=False, average=0.5)
train(config, Path(sys.argv[1]), Path(sys.argv[2]), resume=True, checkpoint_every_s=0.0)
"""


def _losses(out: Path) -> float:
    rows = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    return float([row for row in rows if "loss" in row][-1]["loss"])


@pytest.mark.slow
def test_a_run_that_is_killed_three_times_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    data, whole, killed = tmp_path / "data", tmp_path / "whole", tmp_path / "killed"
    write_planning_data(data)
    torch.set_num_threads(1)
    train(_CONFIG, data, whole, resume=False)
    checkpoint = killed / "checkpoint.safetensors"
    for point in _KILLED_AT:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _RUN.format(steps=_STEPS), str(data), str(killed)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        while not checkpoint.exists() or read_tensors(checkpoint).values["step"] < point:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert read_tensors(checkpoint).values["step"] < _STEPS
    train(_CONFIG, data, killed, resume=True)
    first = read_tensors(whole / "selector.safetensors")
    second = read_tensors(killed / "selector.safetensors")
    assert first.values["step"] == second.values["step"] == _STEPS
    # States of the shared layers are computed anew, beside other texts: within noise, not to the bit.
    furthest = max(
        float((value - second.tensors[name]).abs().max()) for name, value in first.tensors.items() if value.numel()
    )
    assert furthest < 0.02, furthest


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_tensors(path, {"a": torch.ones(3)}, {"step": 1})
    assert read_tensors(path).values == {"step": 1}
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CheckpointUnreadable, match=r"checkpoint\.safetensors"):
        read_tensors(path)

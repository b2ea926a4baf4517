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

_STEPS = 14
_CONFIG = Config(steps=_STEPS, batch=8, own_batch=4, warmup=2, trained_tools=8, written=False, average=0.5)
_RUN = """
import sys
from pathlib import Path
import torch
from conductor.training.train_selector import Config, train
torch.set_num_threads(1)
config = Config(steps={steps}, batch=8, own_batch=4, warmup=2, trained_tools=8, written=False, average=0.5)
train(config, Path(sys.argv[1]), Path(sys.argv[2]), resume=False, checkpoint_every_s=0.0)
"""


def _losses(out: Path) -> float:
    rows = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    return float([row for row in rows if "loss" in row][-1]["loss"])


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    data, whole, killed = tmp_path / "data", tmp_path / "whole", tmp_path / "killed"
    write_planning_data(data)
    torch.set_num_threads(1)
    train(_CONFIG, data, whole, resume=False)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _RUN.format(steps=_STEPS), str(data), str(killed)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    checkpoint = killed / "checkpoint.safetensors"
    while True:
        assert process.poll() is None, "the run ended before it could be killed"
        if checkpoint.exists() and read_tensors(checkpoint).values["step"] >= 4:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.05)
    process.wait()
    assert read_tensors(checkpoint).values["step"] < _STEPS
    train(_CONFIG, data, killed, resume=True)
    first = read_tensors(whole / "selector.safetensors")
    second = read_tensors(killed / "selector.safetensors")
    assert first.values["step"] == second.values["step"] == _STEPS
    # Vectors of the wrong tools are computed anew after a resume, so the runs agree within noise, not to the bit.
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

"""A training run of the selection that is killed goes on as if nothing had been."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from conductor.training.checkpoints import load_checkpoint, save_weights
from conductor.training.selector import SelectorModel
from conductor.training.train_selector import CHECKPOINT, Config, train
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
    checkpoint = killed / CHECKPOINT
    for point in _KILLED_AT:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _RUN.format(steps=_STEPS), str(data), str(killed)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        while not checkpoint.exists() or load_checkpoint(checkpoint)["step"] < point:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert load_checkpoint(checkpoint)["step"] < _STEPS
    train(_CONFIG, data, killed, resume=True)
    first, second = (load_file(out / "selector.safetensors") for out in (whole, killed))
    # States of the shared layers are computed anew, beside other texts: within noise, not to the bit.
    furthest = max(float((value - second[name]).abs().max()) for name, value in first.items() if value.numel())
    assert furthest < 0.02, furthest


def test_a_second_training_begins_with_the_weights_of_the_first(tmp_path: Path) -> None:
    data, first = tmp_path / "data", tmp_path / "first.safetensors"
    write_planning_data(data)
    torch.set_num_threads(1)
    torch.manual_seed(5)
    weights = SelectorModel().state_dict()
    save_weights(first, weights)
    still = replace(_CONFIG, steps=2, start=str(first), encoder_rate=0.0, head_rate=0.0)
    train(still, data, tmp_path / "second", resume=False)
    found = load_file(tmp_path / "second" / "selector.safetensors")
    name = "joint.tool.bias"
    assert torch.allclose(found[name], weights[name], atol=1e-2)
    rows = [json.loads(line) for line in (tmp_path / "second" / "history.jsonl").read_text().splitlines()]
    assert {row["after"] for row in rows if "after" in row} == {"own tools"}

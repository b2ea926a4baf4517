"""Trains the filler of arguments: `python -m conductor.training.train_filler --data DIR --out DIR`.

OUT gets `filler.safetensors` (the averaged weights), `filler.checkpoint` (to resume from), `history.jsonl` and
TensorBoard files.
"""

import argparse
import copy
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor, nn

from conductor.policy.filling_fields import ToolFields, read_tools
from conductor.policy.tokens import Tokens
from conductor.training.checkpoints import (
    load_checkpoint,
    of_this_run,
    random_state,
    restore_random_state,
    save_checkpoint,
    save_weights,
    seed_everything,
)
from conductor.training.datasets import DATA_VARIABLE
from conductor.training.encoder import Bottom
from conductor.training.examples import Example
from conductor.training.filler import FillJoint
from conductor.training.filler_batches import Batch, batch_of
from conductor.training.filler_data import WRITTEN, Draw, Mix, filling_examples
from conductor.training.filler_labels import Labelled
from conductor.training.filler_loss import filler_loss
from conductor.training.filler_parts import parts_of
from conductor.training.filler_scoring import score_filler
from conductor.training.parts import Part, TorchParts
from conductor.training.rounding import round_weights
from conductor.training.selector_parts import bottom_part
from conductor.training.splits import Part as DataPart

GROUPED = 8
"""Batches that are drawn together; checkpoints are written between the groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that a run depends on besides the data."""

    seed: int = 5
    steps: int = 10_700
    """Updates."""
    minutes: float = math.inf
    """Longest wall time of the whole training, resumed or not; the schedule follows it if it comes first."""
    batch: int = 16
    top_rate: float = 1.2e-4
    """Highest learning rate of the encoder's layers."""
    head_rate: float = 8e-4
    """Highest learning rate of everything else."""
    warmup: float = 0.04
    """Share of the training in which the rates rise."""
    weight_decay: float = 0.01
    average: float = 0.999
    """Decay of the running average of the weights, which is what is kept."""
    clip: float = 1.0
    """Longest gradient."""
    stages: tuple[tuple[float, float], ...] = ((0.08, 0.0), (0.2, 0.5), (1.0, 1.0))
    """(until which share of the training, how hard): single calls, some of several, all."""
    mix: Mix = field(
        default_factory=lambda: Mix(
            shares={
                "nestools": 0.26,
                "bfcl": 0.26,
                "sealtools": 0.08,
                "calls": 0.12,
                "nested": 0.12,
                "agents": 0.30,
            },
            rest=0.12,
            other_values=0.6,
            parallel=0.35,
            joined=0.2,
            shuffled=0.5,
            forgotten=0.08,
            strangers=0.15,
        )
    )
    parts: tuple[DataPart, ...] = ("train",)
    written: tuple[str, ...] = WRITTEN
    evaluated: tuple[DataPart, ...] = ("select",)
    held_out: float = 0.0
    """Share of the training examples that is kept for evaluation too, while the recipe is being worked out."""
    evaluate_every: int = 2000
    save_every_s: float = 60.0
    threads: int = 1


class Trainer:
    """One training, step by step."""

    def __init__(self, config: Config, data: Path, out: Path) -> None:
        self.config = config
        self.out = out
        self.rng = seed_everything(config.seed)
        self.tokens = Tokens()
        self.bottom = Bottom().eval()
        self.joint = FillJoint()
        self.average = copy.deepcopy(self.joint).eval()
        self.optimizer = _optimizer(self.joint, config)
        groups = filling_examples(data, *config.parts, written=config.written)
        self.evaluated: dict[str, Sequence[Example]] = dict(
            filling_examples(data, *config.evaluated, written=config.written)
        )
        for name, group in groups.items():
            count = int(len(group) * config.held_out)
            if count:
                self.evaluated[name] = (*self.evaluated.get(name, ()), *group[:count])
            groups[name] = group[count:]
        self.draw = Draw(groups, config.mix)
        self.tools = self._read_tools()
        self.drawn: list[list[Labelled]] = []
        self.step = 0
        self.spent_s = 0.0

    def _read_tools(self) -> Mapping[str, ToolFields]:
        cards = {
            step.card.key: step.card
            for group in self.draw.groups.values()
            for item in group
            for step in item.steps
        }
        return read_tools(TorchParts(self.parts()), self.tokens, tuple(cards.values()))

    def parts(self) -> list[Part]:
        """The parts with the averaged weights, rounded as the shipped file rounds them."""
        rounded = copy.deepcopy(self.average)
        round_weights(rounded)
        return [bottom_part(self.bottom), *parts_of(rounded)]

    def progress(self) -> float:
        """How far the training is, 0 to 1, by steps or by time, whichever is further."""
        return min(1.0, max(self.step / self.config.steps, self.spent_s / (60 * self.config.minutes)))

    def update(self) -> float:
        """One update; returns the loss."""
        config, progress = self.config, self.progress()
        hardness = next(hard for until, hard in config.stages if progress <= until)
        if not self.drawn:
            # Requests of like size go together: a batch costs as much as its longest.
            drawn = sorted(self.draw.batch(config.batch * GROUPED, hardness, self.rng), key=_size)
            order = self.rng.permutation(GROUPED)
            self.drawn = [drawn[config.batch * at : config.batch * (at + 1)] for at in order]
        requests = self.drawn.pop()
        batch = batch_of(requests, self.tools, self.tokens, self.rng)
        rate = _rate(progress, config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["highest"] * rate
        self.joint.train()
        loss = self._loss(batch)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.joint.parameters(), config.clip)
        self.optimizer.step()
        self.step += 1
        decay = min(config.average, self.step / (self.step + 10))
        with torch.no_grad():
            for kept, fresh in zip(self.average.parameters(), self.joint.parameters(), strict=True):
                kept.lerp_(fresh, 1 - decay)
        return float(loss.detach())

    def _loss(self, batch: Batch) -> Tensor:
        ids, mask = torch.from_numpy(batch.tokens.ids), torch.from_numpy(batch.tokens.mask)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                states = self.bottom(ids, mask)
            outputs = self.joint(states, mask, **batch.inputs)
        return filler_loss(outputs, batch.targets, mask)

    def evaluate(self) -> dict[str, Any]:
        """Scores of the averaged weights by group of data."""
        runner = TorchParts(self.parts())
        return {
            name: asdict(score_filler(runner, self.tokens, group))
            for name, group in self.evaluated.items()
            if group
        }

    def save(self) -> None:
        """Write the checkpoint and the averaged weights."""
        save_checkpoint(
            self.out / "filler.checkpoint",
            {
                "model": self.joint.state_dict(),
                "average": self.average.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "random": random_state(self.rng),
                "step": self.step,
                "spent_s": self.spent_s,
            },
        )
        rounded = copy.deepcopy(self.average)
        round_weights(rounded)
        save_weights(self.out / "filler.safetensors", rounded.state_dict())

    def resume(self) -> None:
        """Go on from the checkpoint of an earlier run."""
        with of_this_run(self.out / "filler.checkpoint"):
            state = load_checkpoint(self.out / "filler.checkpoint")
            self.joint.load_state_dict(state["model"])
            self.average.load_state_dict(state["average"])
            self.optimizer.load_state_dict(state["optimizer"])
            restore_random_state(state["random"], self.rng)
            self.step, self.spent_s = state["step"], state["spent_s"]


def _size(item: Labelled) -> int:
    """About how many rows a request takes in the joint pass."""
    fields = sum(len(step.labels) + len(step.card.outputs) + 1 for step in item.steps)
    return len(item.request) // 4 + (fields if len(item.steps) > 1 else len(item.steps[0].labels) + 1)


def _optimizer(joint: FillJoint, config: Config) -> torch.optim.AdamW:
    top = {id(parameter) for parameter in joint.top.parameters()}
    heads = [parameter for parameter in joint.parameters() if id(parameter) not in top]
    return torch.optim.AdamW(
        [
            {"params": list(joint.top.parameters()), "highest": config.top_rate},
            {"params": heads, "highest": config.head_rate},
        ],
        weight_decay=config.weight_decay,
    )


def _rate(progress: float, warmup: float) -> float:
    """Rises in a line, then falls in a line to a fiftieth."""
    if progress < warmup:
        return (progress + 0.01) / (warmup + 0.01)
    return 0.02 + 0.98 * (1 - progress) / (1 - warmup)


def train(
    config: Config,
    data: Path,
    out: Path,
    *,
    resume: bool = False,
    after_step: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Train to the end and return the last scores; safe to kill and to resume at any moment.

    Args:
        config: What the run depends on.
        data: Folder of the public data.
        out: Gets weights, checkpoint and history.
        resume: Go on from the checkpoint in `out`, if there is one.
        after_step: Told of every update that is done and saved, if it was to be saved.
    """
    from torch.utils.tensorboard import SummaryWriter

    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(config.threads)
    trainer = Trainer(config, data, out)
    if resume and (out / "filler.checkpoint").exists():
        trainer.resume()
    with (
        closing(SummaryWriter(str(out / "tensorboard"))) as board,
        (out / "history.jsonl").open("a", encoding="utf-8") as history,
    ):
        return _until_the_end(trainer, board, history, after_step)


def _until_the_end(
    trainer: Trainer, board: Any, history: TextIO, after_step: Callable[[int], None]
) -> dict[str, Any]:
    config, scores = trainer.config, dict[str, Any]()
    losses: list[float] = []
    began, before, saved = time.monotonic(), trainer.spent_s, time.monotonic()
    while trainer.progress() < 1:
        losses.append(trainer.update())
        trainer.spent_s = before + time.monotonic() - began
        if trainer.step % 25 == 0:
            loss = float(np.mean(losses[-25:]))
            board.add_scalar("filler/loss", loss, trainer.step)
            _note(history, {"step": trainer.step, "spent_s": round(trainer.spent_s, 1), "loss": round(loss, 4)})
        done = trainer.progress() >= 1
        if trainer.step % config.evaluate_every == 0 or done:
            scores = trainer.evaluate()
            _note(history, {"step": trainer.step, "scores": scores})
            for name, group in scores.items():
                for score, value in group.items():
                    board.add_scalar(f"filler/{name}/{score}", value, trainer.step)
        if done or (not trainer.drawn and time.monotonic() - saved > config.save_every_s):
            trainer.save()
            saved = time.monotonic()
        after_step(trainer.step)
    return scores


def _note(history: TextIO, row: Mapping[str, Any]) -> None:
    """One line for the file and for whoever watches."""
    line = json.dumps(row)
    history.write(line + "\n")
    history.flush()
    sys.stderr.write(line + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE), help="folder of the data")
    parser.add_argument("--out", type=Path, required=True, help="folder for weights, checkpoint and history")
    parser.add_argument("--minutes", type=float, help="end after this long")
    parser.add_argument("--steps", type=int, help="end after this many updates")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--held-out", type=float, help="share of the training examples to evaluate on as well")
    parser.add_argument("--resume", action="store_true", help="go on from OUT/filler.checkpoint")
    known = parser.parse_args(arguments)
    if known.data is None:
        parser.error(f"--data or {DATA_VARIABLE} is needed")
    given = {name: getattr(known, name) for name in ("minutes", "steps", "seed", "held_out")}
    config = replace(Config(), **{name: value for name, value in given.items() if value is not None})
    train(config, Path(known.data), known.out, resume=known.resume)


if __name__ == "__main__":
    main()

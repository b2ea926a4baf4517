"""Trains the selection of tools: `python -m conductor.training.train_selector --data DIR --out DIR`.

Read `train` from top to bottom. OUT gets selector.checkpoint (about every minute; `--resume` goes on from it),
selector.safetensors (the averaged weights), history.jsonl, config.json and TensorBoard files.
"""

import argparse
import dataclasses
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.utils.tensorboard import SummaryWriter

from conductor.policy.tokens import Tokens
from conductor.training.checkpoints import load_checkpoint, of_this_run, save_checkpoint, save_weights
from conductor.training.datasets import data_folder
from conductor.training.encoder import Bottom
from conductor.training.feedback import FeedbackSamples
from conductor.training.rounding import round_weights
from conductor.training.selector import SelectorModel
from conductor.training.selector_batches import Batch, Foreigners, Nearness, States, ToolReader, batch_of
from conductor.training.selector_loss import Losses, Sources, losses_of
from conductor.training.selector_marks import Marks
from conductor.training.selector_samples import Catalogue, Mixture, Sample, Samples
from conductor.training.written import FOLDER

CHECKPOINT = "selector.checkpoint"
_MARKED = 80
"""Examples of each sort that the marks during training are computed on."""
_BLOCK = 4
"""Steps whose samples are drawn together and put into batches by length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stretch of the training with its own kinds of samples, easy ones first."""

    name: str
    share: float
    """Of all steps."""
    kinds: Mapping[str, float]
    """Shares of "shared", "own", "single", "foreign" and "feedback" batches."""


STAGES = (
    Stage(name="single tools", share=0.05, kinds={"single": 1.0}),
    Stage(name="chains", share=0.40, kinds={"shared": 0.60, "own": 0.28, "foreign": 0.12}),
    Stage(name="graphs", share=0.25, kinds={"shared": 0.46, "own": 0.40, "foreign": 0.14}),
    Stage(name="feedback", share=0.30, kinds={"shared": 0.42, "own": 0.35, "foreign": 0.12, "feedback": 0.11}),
)

OWN_TOOLS = (
    Stage(name="own tools", share=1.0, kinds={"own": 0.55, "foreign": 0.20, "shared": 0.18, "feedback": 0.07}),
)
"""A second training that goes on from the first: mostly requests over tools of their own, and Chinese."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that decides the result."""

    seed: int = 1
    start: str = ""
    """Weights of a training that this one goes on from, by `OWN_TOOLS`; without, it begins with the encoder's."""
    steps: int = 4200
    """Updates in all; the learning rates fall linearly to nothing at the last."""
    batch: int = 32
    """Requests of a batch over the shared registry."""
    own_batch: int = 24
    """Most requests of a batch in which each brings its own tools."""
    own_tools: int = 160
    """About how many tools such a batch has in all; they decide what it costs."""
    encoder_rate: float = 1.2e-4
    head_rate: float = 1e-3
    warmup: int = 80
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest norm of the gradient."""
    average: float = 0.998
    """How much of the moving average stays at each step."""
    dropout: float = 0.15
    layers: int = 2
    """Of the joint block."""
    links_shown: float = 0.5
    """Share of the samples that see the links."""
    foreign: float = 0.15
    """Share of the batches that are read through sentence vectors instead of word pieces."""
    pieces_dropped: float = 0.08
    """Share of the word pieces of a request that are hidden in training."""
    written: bool = True
    """Use the rows that were written for Podium."""
    mixture: Mixture = field(default_factory=Mixture)
    maxsim: bool = True
    """Compare the tokens of request and tool, too."""


def train(
    config: Config,
    data: Path,
    out: Path,
    *,
    resume: bool,
    marks_every: int = 0,
    checkpoint_every_s: float = 60.0,
    written: Path = FOLDER,
) -> None:
    """Train and write the result to `out`.

    Args:
        config: what to do.
        data: folder of the public data.
        out: folder of the run.
        resume: go on from the checkpoint, if there is one.
        marks_every: compute the marks after so many steps besides the ends of stages; 0 for never.
        checkpoint_every_s: seconds between checkpoints.
        written: folder of the rows that were written for Podium.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(config.seed)
    model = SelectorModel(dropout=config.dropout, layers=config.layers, maxsim=config.maxsim)
    if config.start:
        model.load_state_dict(load_file(config.start))
    optimiser = torch.optim.AdamW(
        [
            {"params": model.encoder_parameters(), "lr": config.encoder_rate, "full": config.encoder_rate},
            {"params": model.head_parameters(), "lr": config.head_rate, "full": config.head_rate},
        ],
        weight_decay=config.weight_decay,
    )
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    step, seconds = 0, 0.0
    if resume and (out / CHECKPOINT).exists():
        with of_this_run(out / CHECKPOINT):
            state = load_checkpoint(out / CHECKPOINT)
            model.load_state_dict(state["model"])
            average = state["average"]
            optimiser.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["random"])
            step, seconds = state["step"], state["seconds"]
    else:
        (out / "history.jsonl").write_text("")
        (out / "config.json").write_text(json.dumps(dataclasses.asdict(config), indent=1))

    tokens = Tokens()
    states = States(Bottom(), tokens)
    catalogue = Catalogue()
    folder = written if config.written else out / "nothing written"
    samples = Samples(data, catalogue, mixture=config.mixture, folder=folder)
    samples.feedback = FeedbackSamples(samples, data, folder=folder).draw
    nearness = Nearness(catalogue, states, out / "nearness.safetensors")
    samples.near = nearness
    sources = Sources(
        states=states,
        tools=ToolReader(catalogue, states),
        foreigners=Foreigners(),
        pieces_dropped=config.pieces_dropped,
    )
    marks = Marks(data, tokens, folder=folder, most=_MARKED)
    log = Log(out, samples.sizes, config)
    ends = _ends(config)
    saved = began = time.monotonic()

    for kind, batch in batches(config, samples, nearness, step):
        model.train()
        chance = random.Random(f"{config.seed} step {step}")  # noqa: S311 - samples
        _set_rates(optimiser, step, config)
        foreign = kind == "foreign" or chance.random() < config.foreign
        with torch.autocast("cpu", dtype=torch.bfloat16):
            losses = losses_of(model, batch, sources, chance, foreign=foreign)
        optimiser.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]  # torch does not say
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimiser.step()
        _follow(average, model, min(config.average, (step + 1) / (step + 10)))
        step += 1
        spent = seconds + time.monotonic() - began
        log.losses(step, kind, losses, spent)
        if time.monotonic() - saved > checkpoint_every_s or step == config.steps:
            save_checkpoint(
                out / CHECKPOINT,
                {
                    "model": model.state_dict(),
                    "average": average,
                    "optimizer": optimiser.state_dict(),
                    "random": torch.get_rng_state(),
                    "step": step,
                    "seconds": spent,
                },
            )
            saved = time.monotonic()
        if step in ends or (marks_every and step % marks_every == 0):
            shipped = as_shipped(average, config)
            save_weights(out / f"selector-{step}.safetensors", shipped.state_dict())
            log.marks(step, ends.get(step, ""), marks.of(shipped), spent)
    save_weights(out / "selector.safetensors", as_shipped(average, config).state_dict())
    log.close()


def as_shipped(average: Mapping[str, torch.Tensor], config: Config) -> SelectorModel:
    """The model with the averaged weights, rounded as the shipped file stores them."""
    with torch.random.fork_rng():
        model = SelectorModel(layers=config.layers, maxsim=config.maxsim)
    model.load_state_dict(dict(average))
    round_weights(model)
    return model.eval()


def batches(config: Config, samples: Samples, nearness: Nearness, start: int) -> Iterator[tuple[str, Batch]]:
    """The batches of the steps from `start` on; a step's batch depends on the seed and the step alone."""
    for block in range(start // _BLOCK, -(-config.steps // _BLOCK)):
        chance = random.Random(f"{config.seed} block {block}")  # noqa: S311 - samples
        stage = _stage(block * _BLOCK, config)
        kinds = stage.kinds
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        drawn: list[Sample] = []
        tools: set[int] = set()
        most = (config.batch if kind == "shared" else config.own_batch) * _BLOCK
        while len(drawn) < most and (kind == "shared" or len(tools) < config.own_tools * _BLOCK):
            drawn.append(samples.draw(kind, chance))
            tools.update(drawn[-1].candidates)
        drawn.sort(key=lambda sample: len(sample.request))
        cuts = [drawn[at * len(drawn) // _BLOCK : (at + 1) * len(drawn) // _BLOCK] for at in range(_BLOCK)]
        chance.shuffle(cuts)
        for at, cut in enumerate(cuts):
            if start <= block * _BLOCK + at < config.steps:
                own = random.Random(f"{config.seed} batch {block * _BLOCK + at}")  # noqa: S311 - samples
                batch = batch_of(cut, samples.catalogue, own, links_shown=config.links_shown, alike=nearness.alike)
                yield kind, batch


def _stages(config: Config) -> tuple[Stage, ...]:
    return OWN_TOOLS if config.start else STAGES


def _stage(step: int, config: Config) -> Stage:
    share = 0.0
    for stage in _stages(config):
        share += stage.share
        if step < share * config.steps:
            return stage
    return _stages(config)[-1]


def _ends(config: Config) -> dict[int, str]:
    """The last step of each stage with its name."""
    found, share = {}, 0.0
    for stage in _stages(config):
        share += stage.share
        found[min(config.steps, round(share * config.steps))] = stage.name
    return found


def _set_rates(optimiser: torch.optim.Optimizer, step: int, config: Config) -> None:
    share = min(1.0, (step + 1) / config.warmup) * (1.0 - step / config.steps)
    for group in optimiser.param_groups:
        group["lr"] = group["full"] * share


@torch.no_grad()
def _follow(average: dict[str, torch.Tensor], model: SelectorModel, kept: float) -> None:
    state = model.state_dict()
    torch._foreach_lerp_([average[name] for name in state], list(state.values()), 1.0 - kept)


class Log:
    """Progress on the screen, scalars for TensorBoard, rows for the curves."""

    def __init__(self, out: Path, sizes: Mapping[str, int], config: Config) -> None:
        self._config = config
        self._history = out / "history.jsonl"
        self._board = SummaryWriter(str(out / "tensorboard"))
        self._sums: dict[str, list[float]] = {}
        _say(f"samples {dict(sizes)}")

    def losses(self, step: int, kind: str, losses: Losses, seconds: float) -> None:
        """Note the losses of a step; every 50 a line."""
        self._sums.setdefault("loss", []).append(losses.total.item())
        self._sums.setdefault(f"pointer {kind}", []).append(losses.pointer)
        self._sums.setdefault("unary", []).append(losses.unary)
        self._sums.setdefault("relevance", []).append(losses.relevance)
        self._sums.setdefault("vector", []).append(losses.vector)
        steps = self._config.steps
        if step % 50 and step != steps:
            return
        means = {name: sum(values) / len(values) for name, values in self._sums.items()}
        self._sums.clear()
        self._note(step, {"stage": _stage(step - 1, self._config).name, "seconds": round(seconds, 1), **means})
        shown = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
        left = seconds / step * (steps - step)
        _say(f"step {step}/{steps}  {seconds:.0f} s, {left:.0f} s left  {shown}")

    def marks(self, step: int, stage: str, marks: Mapping[str, float], seconds: float) -> None:
        """Note marks on the parts that choices are made on."""
        self._note(step, {"after": stage, "seconds": round(seconds, 1), **marks})
        _say(f"step {step} {stage}: " + "  ".join(f"{name} {value:.1f}" for name, value in marks.items()))

    def close(self) -> None:
        """Write what is left."""
        self._board.close()

    def _note(self, step: int, row: Mapping[str, Any]) -> None:
        with self._history.open("a") as file:
            file.write(json.dumps({"step": step, **row}) + "\n")
        for name, value in row.items():
            if isinstance(value, float):
                self._board.add_scalar(name.replace(" ", "_"), value, step)


def _say(line: str) -> None:
    import sys

    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the public data; else PODIUM_PLANNING_DATA")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--steps", type=int, default=4200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", default="", metavar="FILE", help="go on from these weights, over own tools")
    parser.add_argument("--resume", action="store_true", help="go on from OUT/selector.checkpoint")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--marks-every", type=int, default=0, help="steps between marks; 0: at the ends of stages")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=JSON", help="another field of Config")
    parser.add_argument(
        "--mixture", action="append", default=[], metavar="FIELD=NUMBER", help="a field of Mixture"
    )
    known = parser.parse_args(arguments)
    torch.set_num_threads(known.threads)
    fields: dict[str, Any] = {name: json.loads(value) for name, _, value in (x.partition("=") for x in known.set)}
    mixture = {name: float(value) for name, _, value in (x.partition("=") for x in known.mixture)}
    config = Config(
        seed=known.seed,
        start=known.start,
        steps=known.steps,
        mixture=Mixture(**mixture),
        **fields,
    )
    train(config, known.data or data_folder(), known.out, resume=known.resume, marks_every=known.marks_every)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

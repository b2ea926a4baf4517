"""What the planner is judged by: kept parts of the public data, and requests written for the purpose.

Each suite becomes files: requests and tools, all that a planner may see, and gold, which only the scorer reads.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plans.reading import new_agent_cards, read_chinese, read_new_agents, read_parallel, read_unservable
from conductor.evaluation.scoring import Mode
from conductor.policy.cards import ToolCard
from conductor.policy.requests import request_text
from conductor.training.datasets import (
    read_bfcl,
    read_nestools,
    read_sealtools,
    read_ultratool,
    ultratool_links,
)
from conductor.training.examples import Example, GoldStep
from conductor.training.splits import Part, members
from conductor.training.written import read_written

CLARIFY = "clarify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Some requests with the same way of scoring."""

    name: str
    title: str
    """For people."""
    mode: Mode
    examples: tuple[Example, ...]
    links: frozenset[tuple[str, str]] | None = None
    """Links between tools that are told to the planner."""
    baselines: tuple[str, ...] = ()
    """Simple planners that stand beside it."""
    learn: str = "ultratool"
    """Data set whose training parts the baselines learn."""
    marks: Mapping[str, float] | None = None
    """What was asked for, by figure."""
    kept: bool = False
    """Written for the evaluation before the first training; otherwise a development part."""
    also: Mapping[str, tuple[frozenset[str], ...]] | None = None
    """By id: other sets of tools that are right too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A suite on disk."""

    batch: Path
    tools: Path | None
    gold: Path


_ULTRATOOL_MARKS: Mapping[tuple[str, bool], Mapping[str, float]] = {
    ("dev", True): {"node_f1": 88, "link_f1": 67, "acc": 67},
    ("dev", False): {"node_f1": 85, "link_f1": 58, "acc": 60},
    ("dev_disjoint", True): {"node_f1": 80, "link_f1": 50, "acc": 56},
    ("dev_disjoint", False): {"node_f1": 75, "link_f1": 40, "acc": 44},
}
_LEARNED = ("nearest", "linear", "chains", "zero_shot")


def suites(data: Path) -> tuple[Suite, ...]:
    """Every suite.

    Raises:
        TrainingDataInvalid: `data` lacks a data set.
    """
    return (*_ultratool(data), *_public(data), *_kept(data))


def _ultratool(data: Path) -> Iterable[Suite]:
    examples, links = read_ultratool(data), ultratool_links(data)
    titles: Mapping[Part, str] = {"dev": "random", "dev_disjoint": "tool sets never seen"}
    for part, title in titles.items():
        for given in (True, False):
            yield Suite(
                name=f"ultratool-{part}-{'links' if given else 'nolinks'}",
                title=f"UltraTool, {title}, links {'given' if given else 'not given'}",
                mode="mean",
                examples=members(examples, part),
                links=links if given else None,
                baselines=() if given else (*_LEARNED, "rules"),
                marks=_ULTRATOOL_MARKS[part, given],
            )


def _public(data: Path) -> Iterable[Suite]:
    yield Suite(
        name="nestools-dev",
        title="NesTools",
        mode="micro",
        examples=members(read_nestools(data), "dev"),
        baselines=(*_LEARNED, "rules"),
        learn="nestools",
        marks={"tool_f1": 88, "dep_f1": 78, "arg_f1": 65, "exact": 30},
    )
    bfcl = read_bfcl(data)
    trained = {_words(one.request) for one in members(bfcl, "train", "select", "select_disjoint")}
    for name, title, fresh, mark in (
        ("multiple", "BFCL multiple, requests that occur in no training part", True, 60.0),
        (
            "multiple",
            "BFCL multiple, all (about half repeat a request of simple_python word for word)",
            False,
            60.0,
        ),
        ("live_multiple", "BFCL live_multiple, requests that occur in no training part", True, None),
    ):
        yield Suite(
            name=f"bfcl-{name}-dev-{'fresh' if fresh else 'all'}",
            title=title,
            mode="accept",
            examples=tuple(
                one
                for one in members(bfcl, "dev")
                if one.source == f"bfcl/{name}" and not (fresh and _words(one.request) in trained)
            ),
            baselines=("zero_shot",),
            learn="bfcl",
            marks=None if mark is None else {"acc": mark},
        )
    yield Suite(
        name="sealtools-dev",
        title="Seal-Tools, 4,076 tools",
        mode="micro",
        examples=members(read_sealtools(data), "dev"),
        baselines=("nearest", "zero_shot"),
        learn="sealtools",
    )
    yield Suite(
        name="packs-dev",
        title="Requests to the packs, planned as the rules do",
        mode="mean",
        examples=members(read_written("packs", data), "dev"),
    )


def _words(request: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", request.lower()))


def _kept(data: Path) -> Iterable[Suite]:
    for kind, mark in (("parallel", 50.0), ("parallel_multiple", 45.0)):
        yield Suite(
            name=f"kept-{kind.replace('_', '-')}",
            title=f"BFCL style {kind}, functions of our own",
            mode="accept",
            examples=read_parallel("parallel" if kind == "parallel" else "parallel_multiple"),
            baselines=("zero_shot",),
            learn="bfcl",
            marks={"acc": mark},
            kept=True,
        )
    yield Suite(
        name="kept-new-agents",
        title="150 requests over 30 agents of unseen fields",
        mode="micro",
        examples=read_new_agents(),
        baselines=("zero_shot",),
        learn="nestools",
        kept=True,
    )
    yield _chinese()
    yield from (_unservable(data, registry) for registry in ("new_agents", "packs", "ultratool"))


def _chinese() -> Suite:
    """The texts are what the planner of a server would read of the tasks."""
    examples, also = [], {}
    for task in read_chinese():
        request = {
            "text": task.example.request,
            "language": "zh",
            "payload_kind": task.payload_kind,
            "attachments": list(task.attachments),
        }
        examples.append(
            Example(
                source=task.example.source,
                id=task.example.id,
                request=request_text(request),
                tools=task.example.tools,
                steps=task.example.steps,
            )
        )
        if task.expect == CLARIFY or task.empty_is_right_too:
            also[task.example.id] = (frozenset({CLARIFY}), frozenset[str]())
    return Suite(
        name="kept-chinese",
        title="100 Chinese requests",
        mode="micro",
        examples=tuple(examples),
        baselines=(),
        kept=True,
        also=also,
    )


def _unservable(data: Path, registry: str) -> Suite:
    examples = tuple(one for one in read_unservable(data) if one.source == f"plans/unservable/{registry}")
    return Suite(
        name=f"kept-unservable-{registry.replace('_', '-')}",
        title=f"Requests that nobody can serve, over {registry}",
        mode="mean",
        examples=examples,
        kept=True,
        also={one.id: (frozenset({CLARIFY}),) for one in examples},
    )


def write(suite: Suite, folder: Path) -> Files:
    """Write a suite's files; one list of tools is written once, lists of each request's own stand beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    batch, gold = folder / f"{suite.name}.requests.jsonl", folder / f"{suite.name}.gold.jsonl"
    first = suite.examples[0].tools
    shared = all(example.tools is first or example.tools == first for example in suite.examples)
    tools = folder / f"{suite.name}.tools.json" if shared else None
    if tools is not None:
        registry: dict[str, Any] = {"tools": [_card(card) for card in first]}
        if suite.links is not None:
            registry["links"] = sorted(map(list, suite.links))
        _replace(tools, [registry])
    _replace(batch, [_request(example, own=not shared) for example in suite.examples])
    _replace(
        gold, [{"id": example.id, "steps": [_step(step) for step in example.steps]} for example in suite.examples]
    )
    return Files(batch=batch, tools=tools, gold=gold)


def _request(example: Example, *, own: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"id": example.id, "request": example.request}
    return row | ({"tools": [_card(card) for card in example.tools]} if own else {})


def _card(card: ToolCard) -> dict[str, Any]:
    written: dict[str, Any] = {"name": card.name, "description": card.description}
    if card.input_schema:
        written["input_schema"] = dict(card.input_schema)
    if card.output_schema:
        written["output_schema"] = dict(card.output_schema)
    return written


def _step(step: GoldStep) -> dict[str, Any]:
    if step.accept is not None:
        return {"tool": step.tool, "accept": {name: list(values) for name, values in step.accept.items()}}
    return {"tool": step.tool, "arguments": dict(step.arguments), "depends_on": list(step.depends_on)}


def _replace(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    scratch = path.with_name(f"{path.name}.new")
    scratch.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    scratch.replace(path)


__all__ = ["CLARIFY", "Files", "Suite", "new_agent_cards", "suites", "write"]

"""Readers of the kept requests; README.md says what each file is for. Nothing in `conductor` may import this."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from cloud.specialists import load_specialists
from conductor.policy.cards import ToolCard
from conductor.training.datasets import read_ultratool, rows_of, step_from_row
from conductor.training.examples import Example, GoldStep
from conductor.training.packs import pack_cards

FOLDER = Path(__file__).parent
ASKED_BACK = "clarify"
Registry = Literal["new_agents", "packs", "ultratool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChineseTask:
    """A Chinese request as a task would be submitted, and the plan that a person expects."""

    example: Example
    expect: str
    """The rule of a pack whose plan is right, `clarify` to ask back, or "" where the steps are written out."""
    payload_kind: str = ""
    attachments: tuple[Mapping[str, Any], ...] = ()
    empty_is_right_too: bool = False
    """No agent can serve it: to ask back and to plan nothing are both right."""


def new_agent_cards() -> tuple[ToolCard, ...]:
    """The 30 agents of fields that no training data has."""
    rows = json.loads((FOLDER / "new_agents.json").read_text(encoding="utf-8"))
    return tuple(ToolCard.from_json(row) for row in rows)


def read_new_agents() -> tuple[Example, ...]:
    """150 requests over the 30 new agents."""
    cards = new_agent_cards()
    return tuple(_example(row, "new_agents", cards) for row in _rows("new_agents"))


def read_unservable(data: Path, *registries: Registry) -> tuple[Example, ...]:
    """Requests that no agent of their registry serves; the right plan is empty.

    Args:
        data: The folder with `ultratool/`, only looked at for that registry.
        registries: Whose requests are wanted; all when none is named.

    Raises:
        TrainingDataInvalid: the folder lacks `ultratool/`.
    """
    rows = [row for row in _rows("unservable") if not registries or row["tools"] in registries]
    cards = {name: _registry(name, data) for name in {row["tools"] for row in rows}}
    return tuple(_example(row, f"unservable/{row['tools']}", cards[row["tools"]]) for row in rows)


def read_chinese() -> tuple[ChineseTask, ...]:
    """60 requests over the agents of the packs, then 40 over the new agents."""
    found = []
    for row in _rows("chinese"):
        expect = row.get("expect", "")
        steps = _steps_of_rule(expect) if expect else None
        example = _example(row, f"chinese/{row['registry']}", _registry(row["registry"], FOLDER), steps)
        found.append(
            ChineseTask(
                example=example,
                expect=expect,
                payload_kind=row.get("payload_kind", ""),
                attachments=tuple(row.get("attachments", ())),
                empty_is_right_too=row.get("empty_is_right_too", False),
            )
        )
    return tuple(found)


def read_parallel(kind: Literal["parallel", "parallel_multiple"]) -> tuple[Example, ...]:
    """80 requests for several calls, of one function or of several."""
    return tuple(
        _example(row, kind, tuple(ToolCard.from_json(card) for card in row["cards"]))
        for row in _rows("parallel")
        if row["kind"] == kind
    )


def _example(
    row: Mapping[str, Any],
    source: str,
    cards: tuple[ToolCard, ...],
    steps: tuple[GoldStep, ...] | None = None,
) -> Example:
    if steps is None:
        steps = tuple(step_from_row(step) for step in row["steps"])
    return Example(source=f"plans/{source}", id=row["id"], request=row["request"], tools=cards, steps=steps)


def _rows(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(rows_of(FOLDER / f"{name}.jsonl"))


@cache
def _registry(name: Registry, data: Path) -> tuple[ToolCard, ...]:
    match name:
        case "new_agents":
            return new_agent_cards()
        case "packs":
            return pack_cards(load_specialists().registry)
        case "ultratool":
            return read_ultratool(data)[0].tools


@cache
def _steps_of_rule(name: str) -> tuple[GoldStep, ...]:
    """The plan of a pack's rule; what it takes from the request stays as `{"request": path}`."""
    if name == ASKED_BACK:
        return (GoldStep(tool=ASKED_BACK, arguments={"language": {"request": "language"}}),)
    [rule] = [rule for pack in load_specialists().packs for rule in pack.rules if rule.name == name]
    return tuple(
        GoldStep(
            tool=step["tool"],
            arguments=step.get("arguments", {}),
            depends_on=_depends(step),
        )
        for step in rule.steps
    )


def _depends(step: Mapping[str, Any]) -> tuple[int, ...]:
    """Steps named by it or by its arguments."""
    named = {
        value["step"]
        for value in step.get("arguments", {}).values()
        if isinstance(value, dict) and "step" in value
    }
    return tuple(sorted(named | set(step.get("depends_on", ()))))

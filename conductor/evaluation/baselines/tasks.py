"""What a baseline gets and gives: requests with their tools, and plans in the form of `podium plan --batch`."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from conductor.policy.cards import ToolCard
from conductor.training.datasets import rows_of
from podium.errors import InvalidRequest, PodiumError


class BaselineLibraryMissing(PodiumError):
    """A baseline needs a library that is not installed here."""

    code = "BASELINE_LIBRARY_MISSING"
    advice = "Install the extra `train` (pip install 'podium[train]'); servers do not need it."


class BaselineInputInvalid(InvalidRequest):
    """A request of the batch that no baseline can plan."""

    code = "BASELINE_INPUT_INVALID"
    advice = 'Give {"id", "request"[, "tools"]} a line, and --tools for those without tools.'


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request and what could be called."""

    id: Any
    """As it came, a number or a text."""
    request: str
    tools: tuple[ToolCard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A baseline's plan: its steps in JSON form and how sure it is."""

    steps: tuple[Mapping[str, Any], ...]
    confidence: float


class Baseline(Protocol):
    """A simple planner."""

    def plan(self, tasks: Sequence[Task]) -> Sequence[Planned]:
        """A plan for each task, in their order."""
        ...


def read_tasks(batch: Path, tools: Path | None) -> tuple[Task, ...]:
    """The requests of a batch file; those without tools of their own get those of the file `tools`.

    Raises:
        BaselineInputInvalid: a row has another form.
        TrainingDataInvalid: a file is missing or no JSON.
        ToolCardInvalid: a tool has another form.
    """
    shared: tuple[ToolCard, ...] | None = None
    if tools is not None:
        registry = next(iter(_whole(tools)), {})
        shared = tuple(ToolCard.from_json(card) for card in registry.get("tools", ()))
    found = []
    for number, row in enumerate(rows_of(batch), 1):
        if set(row) - {"id", "request", "tools"} or not isinstance(row.get("request"), str) or "id" not in row:
            raise BaselineInputInvalid(
                f"{batch}: row {number} must have id and request, at most tools beside them"
            )
        cards = shared if "tools" not in row else tuple(ToolCard.from_json(card) for card in row["tools"])
        if cards is None:
            raise BaselineInputInvalid(f"{batch}: row {number} has no tools, and no --tools are given")
        found.append(Task(id=row["id"], request=row["request"], tools=cards))
    return tuple(found)


def write_plans(path: Path, tasks: Sequence[Task], plans: Iterable[Planned]) -> None:
    """Write predictions; the file appears when it is whole."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        for task, plan in zip(tasks, plans, strict=True):
            row = {"id": task.id, "steps": list(plan.steps), "confidence": round(plan.confidence, 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(temporary, path)


def chain(names: Sequence[str], confidence: float) -> Planned:
    """Tools one after the other, without arguments."""
    steps = tuple(
        {"tool": name, "candidates": [], "arguments": {}, "depends_on": [place - 1] if place else []}
        for place, name in enumerate(names)
    )
    return Planned(steps=steps, confidence=confidence)


def _whole(path: Path) -> Iterable[dict[str, Any]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BaselineInputInvalid(f"{path}: {error}", field="tools") from error
    if not isinstance(value, dict):
        raise BaselineInputInvalid(f'{path}: {{"tools": [...]}} is expected', field="tools")
    yield value

"""Whether the shipped file plans as torch does: the same requests through both, plan by plan."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conductor.plan import Plan
from conductor.policy.batch import BatchPlanner, BatchRow
from conductor.policy.drafting import Drafter, Links, PlanningModel
from conductor.policy.tokens import Tokens
from conductor.training.datasets import (
    data_folder,
    read_bfcl,
    read_nestools,
    read_sealtools,
    read_ultratool,
    ultratool_links,
)
from conductor.training.examples import Example
from conductor.training.local import local_planner
from conductor.training.parts import Part, TorchParts
from conductor.training.splits import members


class InTorch(TorchParts):
    """The parts in torch, as a drafter takes them; how plans are ranked and refused stands in the file."""

    metadata: Mapping[str, Any] = {}
    version = "torch"

    def __init__(self, parts: Sequence[Part], properties: Mapping[str, str]) -> None:
        super().__init__(parts)
        self.properties = properties


def compare(parts: Sequence[Part], file: Path, data: Path | None, *, limit: int = 0) -> dict[str, Any]:
    """Plan the select parts of the public data both ways.

    Args:
        parts: In torch.
        file: The exported ONNX file.
        data: Folder of planning data; the one of the environment when None.
        limit: So many requests of each data set; 0 is all.

    Returns:
        `same`, the share of requests with the same tools, dependencies and arguments; `same_tools`, of those with
        the same tools; each data set on its own; and how many there were.
    """
    exported = local_planner(file)
    models: tuple[PlanningModel, PlanningModel] = (InTorch(parts, exported.properties), exported)
    with_arguments = any(part.name.startswith("fill") for part in parts)
    report: dict[str, Any] = {}
    totals = [0, 0, 0]
    for name, examples, links in _selected(data or data_folder()):
        if not with_arguments and name != "ultratool":
            continue
        chosen = examples[:limit] if limit else examples
        one, other = (_plans(model, chosen, links) for model in models)
        same = sum(a.to_json()["steps"] == b.to_json()["steps"] for a, b in _without_scores(one, other))
        tools = sum(_tools(a) == _tools(b) for a, b in zip(one, other, strict=True))
        report[name] = {"requests": len(chosen), "same": same, "same_tools": tools}
        totals = [totals[0] + len(chosen), totals[1] + same, totals[2] + tools]
    count = max(totals[0], 1)
    return {"same": totals[1] / count, "same_tools": totals[2] / count, "requests": totals[0], **report}


def _selected(data: Path) -> Iterator[tuple[str, tuple[Example, ...], Links | None]]:
    yield "ultratool", _select(read_ultratool(data)), ultratool_links(data)
    yield "nestools", _select(read_nestools(data)), None
    yield "bfcl", _select(read_bfcl(data)), None
    # Over all 4,076 tools a request is slow in torch and says no more.
    yield "sealtools", tuple(map(_narrowed, _select(read_sealtools(data)))), None


def _select(examples: Sequence[Example]) -> tuple[Example, ...]:
    return members(examples, "select", "select_disjoint")


def _narrowed(example: Example) -> Example:
    """The example over its own tools and a few neighbours in the registry."""
    names = example.tool_set
    first = next(place for place, card in enumerate(example.tools) if card.name in names)
    near = example.tools[first : first + 12]
    own = [card for card in example.tools if card.name in names and card not in near]
    return Example(
        source=example.source, id=example.id, request=example.request, tools=(*near, *own), steps=example.steps
    )


def _plans(model: PlanningModel, examples: Sequence[Example], links: Links | None) -> list[Plan]:
    vocabulary = Tokens()
    shared = examples[0].tools if examples and all(item.tools is examples[0].tools for item in examples) else None
    planner = BatchPlanner(lambda: Drafter(model, vocabulary), tools=shared or (), links=links)
    rows = (
        BatchRow(id=item.id, request=item.request, tools=None if shared is not None else item.tools)
        for item in examples
    )
    return [plan.plan for plan in planner.plans(rows)]


def _tools(plan: Plan) -> list[str]:
    return sorted(step.tool for step in plan.steps)


def _without_scores(one: Sequence[Plan], other: Sequence[Plan]) -> Iterator[tuple[Plan, Plan]]:
    """Pairs without candidates: their scores differ in the last digit."""
    for pair in zip(one, other, strict=True):
        first, second = (
            Plan(
                steps=tuple(
                    type(step)(tool=step.tool, arguments=step.arguments, depends_on=step.depends_on)
                    for step in plan.steps
                ),
                parallel_groups=plan.parallel_groups,
                confidence=0.0,
            )
            for plan in pair
        )
        yield first, second

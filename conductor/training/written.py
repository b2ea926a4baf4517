"""Reader of the training requests that were written for Podium, `conductor/training/written/*.jsonl`.

A row is `{"id", "request", "steps"[, "registry", "tools", "cards", "others"]}`. `cards` are whole descriptions.
`tools` are names out of `registry`: a public data set (ultratool, nestools, sealtools, bfcl), the agents of the
packs (packs) or those of an invented organisation (agents/NAME); all of them where absent. Without a registry they
are whole descriptions too. `others` are names by data set of tools that stand beside them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from conductor.policy.cards import ToolCard
from conductor.training.datasets import (
    TrainingDataInvalid,
    read_bfcl,
    read_nestools,
    read_sealtools,
    read_ultratool,
    rows_of,
    step_from_row,
)
from conductor.training.examples import Example

FOLDER = Path(__file__).parent / "written"
PACK_CARDS = FOLDER / "packs_cards.json"
"""Cards of the packs' agents, as `python -m bench.pack_examples` found them."""
AGENT_CARDS = FOLDER / "agents_cards.json"
"""Cards of the agents of invented organisations, by organisation."""
_READERS = {"ultratool": read_ultratool, "nestools": read_nestools, "sealtools": read_sealtools, "bfcl": read_bfcl}


def read_written(name: str, data: Path, folder: Path = FOLDER) -> tuple[Example, ...]:
    """The examples of `folder/NAME.jsonl`; `data` holds the registries their names refer to.

    Raises:
        TrainingDataInvalid: a row has another form or names a tool that its registry does not have.
    """
    return tuple(_example(row, name, data) for row in rows_of(folder / f"{name}.jsonl"))


def read_corrections(path: Path, data: Path) -> tuple[Example, ...]:
    """The examples of a file of `podium dataset build`, or of any other file of the same form.

    Raises:
        TrainingDataInvalid: a row has another form or names a tool that it does not describe.
    """
    return tuple(_example(row, "corrections", data) for row in rows_of(path))


def _example(row: Mapping[str, Any], name: str, data: Path) -> Example:
    steps = tuple(step_from_row(step) for step in row["steps"])
    listed = row.get("tools") or ()
    described = [*row.get("cards", ()), *(tool for tool in listed if isinstance(tool, Mapping))]
    tools = tuple(ToolCard.from_json(card) for card in described)
    if "registry" in row:
        tools += _named(row["registry"], row.get("tools"), data)
    for registry, names in row.get("others", {}).items():
        tools += _named(registry, names, data)
    missing = {step.tool for step in steps} - {card.name for card in tools}
    if missing:
        raise TrainingDataInvalid(
            f"{name} {row['id']}: {', '.join(sorted(missing))} are in no registry of the row"
        )
    return Example(source=f"written/{name}", id=str(row["id"]), request=row["request"], tools=tools, steps=steps)


def _named(registry: str, names: Sequence[str] | None, data: Path) -> tuple[ToolCard, ...]:
    cards, whole = registry_cards(registry, data)
    if names is None:
        return whole
    unknown = [name for name in names if name not in cards]
    if unknown:
        raise TrainingDataInvalid(f"{registry} has no tool {', '.join(unknown)}")
    return tuple(cards[name] for name in names)


@cache
def _organisations() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    found: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(AGENT_CARDS.read_text(encoding="utf-8"))
    return found


@cache
def registry_cards(registry: str, data: Path) -> tuple[Mapping[str, ToolCard], tuple[ToolCard, ...]]:
    """Cards of a data set by name, the first of each name, and all of them as one tuple that examples share."""
    if registry == "packs":
        agents = tuple(map(ToolCard.from_json, json.loads(PACK_CARDS.read_text(encoding="utf-8"))))
        return {card.name: card for card in agents}, agents
    if registry.startswith("agents/"):
        name = registry.removeprefix("agents/")
        if name not in _organisations():
            raise TrainingDataInvalid(f"{AGENT_CARDS} has no organisation {name}")
        agents = tuple(map(ToolCard.from_json, _organisations()[name]))
        return {card.name: card for card in agents}, agents
    cards: dict[str, ToolCard] = {}
    seen: set[int] = set()
    for example in _READERS[registry](data):
        if id(example.tools) in seen:
            continue
        seen.add(id(example.tools))
        for card in example.tools:
            cards.setdefault(card.name, card)
    return cards, tuple(cards.values())

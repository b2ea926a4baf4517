"""Write the training requests for the packs: `python -m bench.pack_examples [--count N] [--seed N]`.

The `rules` planner labels them, so they are written anew when a pack's rules, words or agents change. Two files of
`conductor/training/written` come out: `packs.jsonl` and, with the agents' cards, `packs_cards.json`.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloud.specialists import Specialists, load_specialists
from conductor.policy.cards import ToolCard
from conductor.training.datasets import data_folder
from conductor.training.examples import Example
from conductor.training.packs import PackExamples, PackSetting, pack_cards, pack_examples
from conductor.training.written import FOLDER, PACK_CARDS, registry_cards

# Within the quarter after the data of the sales pack ends, so that "last quarter" has data.
AS_OF = datetime(2026, 10, 15, 9, tzinfo=UTC)
DISTRACTORS = ("ultratool", "nestools", "bfcl")


def main() -> None:
    """Generate, write, and say how many sentences were planned otherwise than they were written for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=860, help="requests to try for; half of them Chinese")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    specialists = load_specialists()
    known = _distractors(data_folder())
    found = generate(specialists, count=arguments.count, seed=arguments.seed, distractors=known)
    cards = pack_cards(specialists.registry)
    names = {card.name for card in cards}
    rows = [_row(example, names, known) for example in found.examples]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (arguments.out / "packs.jsonl").write_text(lines, encoding="utf-8")
    written = ",\n".join(json.dumps(_card(card), ensure_ascii=False, default=dict) for card in cards)
    (arguments.out / PACK_CARDS.name).write_text(f"[{written}]\n", encoding="utf-8")
    kinds = Counter(example.id.rsplit("-", 1)[0] for example in found.examples)
    print(f"{len(rows)} requests: {dict(kinds)}; left out: {dict(found.left_out)}")


def generate(
    specialists: Specialists, *, count: int, seed: int, distractors: Mapping[str, tuple[str, ToolCard]]
) -> PackExamples:
    """The examples of `conductor.training.packs` over the packs that ship with Podium."""
    setting = PackSetting(
        planner=specialists.planner,
        normalise=specialists.normalise,
        registry=specialists.registry,
        vocabularies=[pack.vocabulary for pack in specialists.packs],
        as_of=AS_OF,
    )
    others = [card for _, card in distractors.values()]
    return asyncio.run(pack_examples(setting, count=count, seed=seed, distractors=others))


def _distractors(data: Path) -> Mapping[str, tuple[str, ToolCard]]:
    """Tools of public data sets by name, with the data set; the first of each name."""
    known: dict[str, tuple[str, ToolCard]] = {}
    for registry in DISTRACTORS:
        for name, card in registry_cards(registry, data)[0].items():
            known.setdefault(name, (registry, card))
    return known


def _row(example: Example, agents: set[str], known: Mapping[str, tuple[str, ToolCard]]) -> dict[str, Any]:
    """An example in the form of `conductor/training/written.py`."""
    steps: Sequence[dict[str, Any]] = [
        {"tool": step.tool, "arguments": dict(step.arguments), "depends_on": list(step.depends_on)}
        for step in example.steps
    ]
    others: dict[str, list[str]] = {}
    for card in example.tools:
        if card.name not in agents:
            others.setdefault(known[card.name][0], []).append(card.name)
    row = {"id": example.id, "registry": "packs", "request": example.request, "steps": steps}
    return {**row, "others": others} if others else row


def _card(card: ToolCard) -> dict[str, Any]:
    return {
        "name": card.name,
        "description": card.description,
        "input_schema": card.input_schema,
        "output_schema": card.output_schema,
    }


if __name__ == "__main__":
    main()

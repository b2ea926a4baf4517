"""Training with execution feedback: what became of an earlier plan, and the decision that is better then.

Trajectories come from the simulator, over rows that are trained on, and from what people corrected in event logs
(`podium dataset build`). Each becomes a sample of the selector's own kind, with what was seen of its tools.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conductor.policy.cards import ToolCard
from conductor.policy.selecting import VERDICTS
from conductor.training.datasets import (
    TrainingDataInvalid,
    read_nestools,
    read_ultratool,
    rows_of,
    step_from_row,
)
from conductor.training.examples import Example
from conductor.training.selector_samples import UNSEEN, Sample, Samples
from conductor.training.simulator import Odds, Outcome, Trajectory, simulate
from conductor.training.splits import part_of
from conductor.training.stand_ins import stand_in
from conductor.training.written import FOLDER, read_written

_SHARES = {
    "ultratool": 0.50,
    "nestools": 0.14,
    "written/ultratool_a": 0.08,
    "written/ultratool_b": 0.08,
    "written/calls": 0.06,
    "written/nested": 0.06,
    "written/packs": 0.08,
}
"""Of the trajectories, by where their examples come from."""
Mistakes = Mapping[tuple[str, str], tuple[tuple[str, ...], ...]]
"""Plans that a model made, by source and id of the example."""


class FeedbackSamples:
    """Draws samples with feedback; add it before anything is computed of the catalogue: it adds stand-ins."""

    def __init__(
        self,
        samples: Samples,
        data: Path,
        *,
        odds: Odds | None = None,
        mistakes: Mistakes | None = None,
        extra: Sequence[Trajectory] = (),
        folder: Path = FOLDER,
    ) -> None:
        """Read the rows that trajectories are made of.

        Args:
            samples: Whose catalogue the samples use, and whose `near` says which tools read alike.
            data: The folder of the public data.
            odds: How often what goes wrong.
            mistakes: Plans that a model made for rows that are trained on.
            extra: Trajectories from event logs; one sample in ten is one of them.
            folder: Where the written rows are.

        Raises:
            TrainingDataInvalid: a file of the data is missing or has another form.
        """
        self._samples = samples
        self._odds = odds or Odds()
        self._mistakes = mistakes or {}
        self._extra = tuple(item for item in extra if item.example.tools)
        groups, self._kept_sets = feedback_examples(data, folder=folder)
        self._groups = {name: rows for name, rows in groups.items() if rows}
        self._numbers: dict[int, Mapping[str, int]] = {}
        self._registries: dict[int, tuple[ToolCard, ...]] = {}
        for rows in self._groups.values():
            for row in rows:
                self._register(row)
        for item in self._extra:
            samples.catalogue.add(item.example.tools)

    def draw(self, chance: random.Random) -> Sample:
        """The next sample."""
        return self.sample(self.trajectory(chance))

    def trajectory(self, chance: random.Random) -> Trajectory:
        """The next trajectory."""
        if self._extra and chance.random() < 0.1:
            return chance.choice(self._extra)
        while True:
            name = chance.choices(list(self._groups), [_SHARES[name] for name in self._groups])[0]
            example = chance.choice(self._groups[name])
            numbers = self._numbers[id(example.tools)]
            cards = self._samples.catalogue.cards
            near = [
                cards[number].name for tool in example.tool_set for number in self._samples.near(numbers[tool])[:8]
            ]
            found = simulate(
                example,
                chance,
                near=near,
                mistakes=self._mistakes.get((example.source, example.id), ()),
                odds=self._odds,
            )
            if frozenset(step.tool for step in found.example.steps) not in self._kept_sets:
                return found

    def sample(self, trajectory: Trajectory) -> Sample:
        """A trajectory as the selector is trained on it."""
        example = trajectory.example
        candidates = self._samples.catalogue.add(example.tools)
        number = dict(zip((card.name for card in example.tools), candidates, strict=True))
        return Sample(
            request=example.request.strip(),
            candidates=candidates,
            path=tuple(number[step.tool] for step in example.steps),
            waits=tuple(step.depends_on for step in example.steps),
            linked=example.source == "ultratool",
            feedback=tuple(
                (number[outcome.tool], VERDICTS.index(outcome.verdict))
                for outcome in trajectory.outcomes
                if outcome.tool in number
            ),
        )

    def _register(self, row: Example) -> None:
        catalogue = self._samples.catalogue
        if id(row.tools) not in self._numbers:
            numbers = catalogue.add(row.tools)
            self._numbers[id(row.tools)] = dict(zip((card.name for card in row.tools), numbers, strict=True))
            self._registries[id(row.tools)] = row.tools
        cards = {card.name: card for card in row.tools}
        for tool in sorted(row.tool_set):
            number = self._numbers[id(row.tools)][tool]
            size = len(catalogue.cards)
            (other,) = catalogue.add((stand_in(cards[tool]),))
            if other == size:
                # What may follow a tool may follow the one that does the same.
                catalogue.links |= {(other, b) for a, b in catalogue.links if a == number}
                catalogue.links |= {(a, other) for a, b in catalogue.links if b == number}


def feedback_examples(
    data: Path, *, folder: Path = FOLDER
) -> tuple[Mapping[str, list[Example]], frozenset[frozenset[str]]]:
    """Rows that trajectories are made of by group, and the sets of tools that no sample may have.

    Args:
        data: The folder of the public data.
        folder: Where the written rows are.

    Raises:
        TrainingDataInvalid: a file is missing or has another form.
    """
    whole = read_ultratool(data)
    kept_sets = frozenset(row.tool_set for row in whole if part_of(row) in UNSEEN)
    groups = {
        "ultratool": [row for row in whole if part_of(row) == "train"],
        "nestools": [row for row in read_nestools(data) if part_of(row) == "train"],
    }
    for source in _SHARES:
        _, _, name = source.partition("written/")
        if name and (folder / f"{name}.jsonl").exists():
            rows = (row for row in read_written(name, data, folder) if part_of(row) == "train")
            groups[source] = [row for row in rows if row.tool_set not in kept_sets]
    return {name: [row for row in rows if row.steps] for name, rows in groups.items()}, kept_sets


def read_corrected(path: Path) -> tuple[Trajectory, ...]:
    """Trajectories out of what people corrected: rows of `podium dataset build`.

    A row is `{"id", "request", "tools", "steps"[, "previous": {"steps", "verdicts"}]}`; where there was no plan
    before, nothing is told of one.

    Raises:
        TrainingDataInvalid: a row has another form; file and row are named.
    """
    return tuple(_corrected(row, path) for row in rows_of(path))


def _corrected(row: Mapping[str, Any], path: Path) -> Trajectory:
    try:
        tools = tuple(ToolCard.from_json(card) for card in row["tools"])
        steps = tuple(step_from_row(step) for step in row["steps"])
        previous = row.get("previous") or {"steps": (), "verdicts": ()}
        plan = tuple(step["tool"] for step in previous["steps"])
        verdicts = tuple(previous["verdicts"])
        example = Example(source="corrected", id=str(row["id"]), request=row["request"], tools=tools, steps=steps)
    except (KeyError, TypeError) as error:
        raise TrainingDataInvalid(
            f"{path}: {row.get('id', '?')}: {error!r} is missing or of another type"
        ) from error
    names = {card.name for card in tools}
    if len(verdicts) != len(plan) or set(verdicts) - {*VERDICTS, ""}:
        raise TrainingDataInvalid(
            f"{path}: {row['id']}: verdicts must be one of {', '.join(VERDICTS)} for each step"
        )
    if unknown := {step.tool for step in steps} - names:
        raise TrainingDataInvalid(f"{path}: {row['id']}: {', '.join(sorted(unknown))} are no tools of the row")
    outcomes = tuple(
        Outcome(tool=tool, verdict=verdict) for tool, verdict in zip(plan, verdicts, strict=True) if verdict
    )
    return Trajectory(
        example=example,
        plan=plan,
        outcomes=outcomes,
        kind="corrected",
        complete=sorted(plan) == sorted(step.tool for step in steps),
    )


def write_mistakes(path: Path, mistakes: Mistakes) -> None:
    """Keep plans that a model made; `read_mistakes` reads them."""
    rows = (
        json.dumps({"source": source, "id": key, "plans": plans}, ensure_ascii=False)
        for (source, key), plans in sorted(mistakes.items())
    )
    beside = path.with_name(path.name + ".tmp")
    beside.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    beside.replace(path)


def read_mistakes(path: Path) -> Mistakes:
    """What `write_mistakes` wrote.

    Raises:
        TrainingDataInvalid: the file is missing or has another form.
    """
    return {(row["source"], row["id"]): tuple(tuple(plan) for plan in row["plans"]) for row in _rows(path)}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    for row in rows_of(path):
        if not {"source", "id", "plans"} <= row.keys():
            raise TrainingDataInvalid(f"{path}: a row needs source, id and plans")
        yield row


def share_failing(trajectories: Iterable[Trajectory]) -> float:
    """The share of the trajectories in which something was not as it should be."""
    found = [trajectory.fails for trajectory in trajectories]
    return sum(found) / max(1, len(found))

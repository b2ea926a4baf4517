"""What the selection is trained on: nothing that is held out, and the same from the same seed."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conductor.policy.cards import ToolCard
from conductor.training import synthesis
from conductor.training.datasets import TrainingDataInvalid
from conductor.training.examples import Example, GoldStep
from conductor.training.selector_batches import batch_of
from conductor.training.selector_samples import Catalogue, Mixture, Sample, Samples
from conductor.training.splits import part_of
from conductor.training.written import registry_cards
from tests.unit.conductor.training.planning_data import none_alike, write_planning_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_planning_data(folder)
    return folder


def _samples(data: Path, written: Path | None = None) -> Samples:
    return Samples(data, Catalogue(), mixture=Mixture(), folder=written or data / "nothing written")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("Call search_train to find a train", "find a train"),
        ("Then call x for booking", "booking"),
        ("Use file_write to Create the file.", "create the file"),
        ("", ""),
    ],
)
def test_a_step_s_wording_does_not_name_its_tool(text: str, clause: str) -> None:
    assert synthesis.clause_of(text) == clause


def test_walks_follow_the_links() -> None:
    source = synthesis.wordings(
        [
            Example(
                source="ultratool", id="1", request="", tools=(), steps=(GoldStep(tool="a", text="Call a to go"),)
            )
        ],
        [("a", "b"), ("b", "c"), ("c", "a")],
        {"a": "A", "b": "B tool", "c": ""},
    )
    for seed in range(30):
        walk = synthesis.walk(source, random.Random(seed), 3)
        tools = [tool for tool, _ in walk]
        assert tools in (["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"])
        assert all(text for _, text in walk)


def test_other_numbers_change_numbers_only() -> None:
    changed = synthesis.other_numbers("Area of base 10 and height 2.50 in room B12", random.Random(4))
    assert changed.startswith("Area of base ")
    assert changed.endswith(" in room B12")
    assert changed != "Area of base 10 and height 2.50 in room B12"


def test_held_out_rows_are_never_drawn(data: Path) -> None:
    held = [json.loads(line) for line in (data / "ultratool/requests.jsonl").read_text().splitlines()]
    samples = _samples(data)
    drawn = {samples.draw("shared", random.Random(seed)).request for seed in range(600)}
    gold = {
        row["id"]: row
        for row in (json.loads(line) for line in (data / "ultratool/gold.jsonl").read_text().splitlines())
    }
    outside = [
        row["request"]
        for row in held
        if part_of(
            Example(
                source="ultratool",
                id=row["id"],
                request=row["request"],
                tools=(),
                steps=tuple(GoldStep(tool=step["tool"]) for step in gold[row["id"]]["steps"]),
            )
        )
        != "train"
    ]
    assert outside
    assert not drawn & set(outside)


def test_a_request_that_is_held_out_elsewhere_is_not_trained_on(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (data / "bfcl/multiple/requests.jsonl").read_text().splitlines()]
    samples = _samples(data)
    # `multiple` repeats every request of `simple_python`, and some of its rows are held out.
    kept = {row["id"]: row["request"] for row in rows}
    out = {
        request
        for key, request in kept.items()
        if part_of(Example(source="bfcl/multiple", id=key, request=request, tools=(), steps=())) != "train"
    }
    drawn = {samples.draw("own", random.Random(seed)).request for seed in range(400)}
    assert out
    assert not drawn & out


def test_written_rows_with_a_held_out_set_of_tools_are_left_out(data: Path, tmp_path: Path) -> None:
    sets: dict[str, list[str]] = {}
    for line in (data / "ultratool/gold.jsonl").read_text().splitlines():
        row = json.loads(line)
        names = [step["tool"] for step in row["steps"]]
        example = Example(
            source="ultratool", id=row["id"], request="", tools=(), steps=tuple(GoldStep(tool=n) for n in names)
        )
        sets.setdefault(part_of(example), names)
    rows = [_written(part, sets[part], number) for part in ("dev_disjoint", "train") for number in range(8)]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert 0 < _samples(data, tmp_path).sizes["written"] <= 8


def _written(part: str, names: list[str], number: int) -> dict[str, Any]:
    steps = [{"tool": name, "depends_on": []} for name in names]
    return {
        "id": f"{part}-{number}",
        "registry": "ultratool",
        "request": f"{part} {number}",
        "steps": steps,
    }


def test_the_same_seed_draws_the_same(data: Path) -> None:
    first, second = _samples(data), _samples(data)
    for kind in ("shared", "own", "single"):
        assert [first.draw(kind, random.Random(seed)) for seed in range(40)] == [
            second.draw(kind, random.Random(seed)) for seed in range(40)
        ]


def test_the_right_tools_are_always_candidates(data: Path) -> None:
    samples = _samples(data)
    chance = random.Random(5)
    for kind in ("shared", "own", "single") * 100:
        sample = samples.draw(kind, chance)
        assert set(sample.path) <= set(sample.candidates)
        assert len(sample.waits) == len(sample.path)


def test_any_order_that_the_needs_allow_is_right() -> None:
    catalogue = Catalogue()
    numbers = catalogue.add([ToolCard(name=name) for name in "abc"])
    sample = Sample(request="r", candidates=numbers, path=numbers, waits=((), (), (0,)))
    batch = batch_of([sample], catalogue, random.Random(1), links_shown=0.0, alike=none_alike)
    place = {tool: at for at, tool in enumerate(batch.tools)}
    assert batch.ready[0][0] == {place[numbers[0]], place[numbers[1]]}
    orders = {
        batch_of([sample], catalogue, random.Random(seed), links_shown=0.0, alike=none_alike).paths[0]
        for seed in range(60)
    }
    assert len(orders) > 1
    assert all(order.index(place[numbers[0]]) < order.index(place[numbers[2]]) for order in orders)


def test_tools_of_others_are_wrong_unless_they_read_like_a_right_one() -> None:
    catalogue = Catalogue()
    numbers = catalogue.add(tuple(ToolCard(name=name) for name in ("book", "sell", "reserve", "weather")))
    first = Sample(request="a", candidates=numbers[:2], path=numbers[:1], waits=((),))
    second = Sample(request="b", candidates=numbers[2:], path=numbers[3:], waits=((),))
    nobody = Sample(request="c", candidates=numbers[:2], path=(), waits=())

    def alike(ours: Sequence[int], theirs: Sequence[int]) -> NDArray[np.bool_]:
        pair = {numbers[0], numbers[2]}
        return np.array([[{a, b} <= pair for b in theirs] for a in ours])

    batch = batch_of([first, second, nobody], catalogue, random.Random(1), links_shown=0.0, alike=alike)
    wrong = [
        {catalogue.cards[tool].name for tool, no in zip(batch.tools, row.tolist(), strict=True) if no}
        for row in batch.wrong
    ]
    assert wrong == [{"sell", "weather"}, {"book", "sell", "reserve"}, {"book", "sell"}]


def test_an_organisation_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingDataInvalid, match="no organisation atlantis"):
        registry_cards("agents/atlantis", tmp_path)

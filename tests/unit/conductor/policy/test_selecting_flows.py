"""Which tools could feed which, by the names of their fields."""

import numpy as np
import pytest

from conductor.policy.cards import ToolCard
from conductor.policy.selecting_flows import FLOWS, FieldWords, flows


def _tool(name: str, takes: tuple[str, ...], gives: tuple[str, ...]) -> FieldWords:
    def schema(names: tuple[str, ...]) -> dict[str, object]:
        return {"type": "object", "properties": {name: {"type": "string"} for name in names}}

    card = ToolCard(name=name, description="", input_schema=schema(takes), output_schema=schema(gives))
    return FieldWords.of(card)


def test_fields_of_the_same_words_are_found_in_whatever_style_they_are_written() -> None:
    tools = [
        _tool("find", ("city",), ("flight_id", "price")),
        _tool("book", ("flightId", "passenger"), ("booking",)),
        _tool("weather", ("place",), ()),
    ]
    found = flows(tools)
    assert found.shape == (3, 3, FLOWS)
    assert found[0, 1].tolist() == [1.0, 1.0]
    assert found[1].max() == found[2].max() == found[0, 2].max() == 0.0


def test_the_best_pair_of_fields_counts() -> None:
    found = flows([_tool("a", (), ("x", "total_price_eur")), _tool("b", ("total price", "y"), ())])
    assert found[0, 1, 0] == pytest.approx(2 / 3)
    assert found[0, 1, 1] == 0.0


def test_no_tool_feeds_itself_and_none_without_fields_feeds_anything() -> None:
    assert not flows([_tool("echo", ("text",), ("text",))]).any()
    assert not flows([_tool("a", (), ()), _tool("b", ("text",), ())]).any()
    assert flows([]).shape == (0, 0, FLOWS)


def test_it_agrees_with_comparing_every_pair_by_hand() -> None:
    random = np.random.default_rng(7)
    words = ["id", "name", "date", "total", "price", "city", "order"]

    def names() -> tuple[str, ...]:
        return tuple("_".join(random.choice(words, random.integers(1, 4))) for _ in range(random.integers(0, 4)))

    tools = [_tool(str(at), names(), names()) for at in range(12)]
    found = flows(tools)
    for a, first in enumerate(tools):
        for b, second in enumerate(tools):
            pairs = [len(x & y) / len(x | y) for x in first.gives for y in second.takes] if a != b else []
            assert found[a, b, 0] == pytest.approx(max(pairs, default=0.0), abs=1e-6)
            assert found[a, b, 1] == float(max(pairs, default=0.0) == 1.0)

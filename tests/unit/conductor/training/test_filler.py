"""Labels, variation and one real, tiny training of the filler: after a stop it goes on as if there were none."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conductor.plan import Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.filling import Filler
from conductor.policy.filling_decoding import Scores, decode
from conductor.policy.filling_inputs import joint_inputs
from conductor.policy.filling_kinds import ABSENT, FORM, KINDS, LIST, REFERENCE, SPAN, TRUE, UNKNOWN
from conductor.policy.reading import read
from conductor.policy.tokens import Tokens
from conductor.policy.waiting import Waiting
from conductor.training.checkpoints import CheckpointInvalid, load_checkpoint, of_this_run, save_checkpoint
from conductor.training.examples import Example, GoldStep
from conductor.training.filler_labels import Labelled, labelled
from conductor.training.filler_parts import filler_parts
from conductor.training.filler_scoring import accepted
from conductor.training.filler_variation import (
    Values,
    joined_requests,
    parallel_calls,
    shuffled,
    with_a_stranger,
    with_other_values,
    without_a_step,
)
from conductor.training.parts import TorchParts
from conductor.training.selector_parts import bottom_part
from conductor.training.train_filler import Config, train

_BOOK = ToolCard(
    name="book_table",
    description="Book a table.",
    input_schema={
        "type": "object",
        "properties": {
            "restaurant": {"type": "string", "description": "name of the restaurant"},
            "date": {"type": "string", "description": "date in YYYY-MM-DD"},
            "guests": {"type": "integer", "description": "number of guests"},
            "dishes": {"type": "array", "items": {"type": "string"}, "description": "dishes to prepare"},
            "terrace": {"type": "boolean", "description": "outside"},
        },
        "required": ["restaurant"],
    },
    output_schema={"type": "object", "properties": {"booking_id": {"type": "string"}}},
)
_PAY = ToolCard(
    name="pay",
    input_schema={"type": "object", "properties": {"booking_id": {"type": "string"}}, "required": ["booking_id"]},
)
_STRANGER = ToolCard(name="stranger")
_REQUEST = "Book Casa Lola for four on May 3, 2024 on the terrace with soup, rice and figs, then pay for it."


def _example() -> Example:
    return Example(
        source="test",
        id="1",
        request=_REQUEST,
        tools=(_BOOK, _PAY),
        steps=(
            GoldStep(
                tool="book_table",
                arguments={
                    "restaurant": "casa lola",
                    "date": "2024-05-03",
                    "guests": 4,
                    "dishes": ["soup", "rice", "figs"],
                    "terrace": True,
                },
            ),
            GoldStep(tool="pay", arguments={"booking_id": {"step": 0, "field": "booking_id"}}),
        ),
    )


def _texts(item: Labelled, step: int, name: str) -> list[str]:
    return [item.request[start:end] for _, start, end in item.steps[step].labels[name,].spans]


def test_labels_say_where_each_value_stands() -> None:
    item = labelled(_example())
    labels = item.steps[0].labels
    assert _texts(item, 0, "restaurant") == ["Casa Lola"]
    assert [(kind, item.request[start:end]) for kind, start, end in labels["date",].spans] == [
        (FORM, "May 3, 2024")
    ]
    assert _texts(item, 0, "guests") == ["four"]
    assert [item.request[start:end] for start, end in labels["dishes",].items] == ["soup", "rice", "figs"]
    assert LIST in labels["dishes",].kinds
    assert labels["terrace",].kinds == {TRUE}
    assert item.steps[1].labels["booking_id",].reference == (0, "booking_id")


def test_an_argument_that_gold_leaves_out_is_absent() -> None:
    example = replace(_example(), steps=(GoldStep(tool="pay", accept={"booking_id": ("", "x")}),))
    assert labelled(example).steps[0].labels["booking_id",].kinds == {ABSENT}


def test_variation_moves_the_labels_with_the_text() -> None:
    item = labelled(_example())
    values = Values({"restaurant": ("Nido", "El Faro", "Le Petit", "Grand Café")})
    rng = np.random.default_rng(3)
    for _ in range(20):
        varied = with_other_values(item, values, rng)
        joined = joined_requests(varied, item, rng)
        assert _texts(varied, 0, "restaurant")[0] in (*values.by_word["restaurant"], "Casa Lola")
        assert [joined.request[s:e] for s, e in joined.steps[2].labels["dishes",].items] == [
            "soup",
            "rice",
            "figs",
        ]
        assert joined.steps[3].labels["booking_id",].reference == (2, "booking_id")


def test_one_call_becomes_several_with_a_value_each() -> None:
    card = ToolCard(name="weather", input_schema={"type": "object", "properties": {"city": {"type": "string"}}})
    single = labelled(
        Example(
            source="test",
            id="2",
            request="Weather in Lima today",
            tools=(card,),
            steps=(GoldStep(tool="weather", arguments={"city": "Lima"}),),
        )
    )
    values = Values({"city": ("Oslo", "Rome", "Bonn", "Quito")})
    made = parallel_calls(single, values, np.random.default_rng(1))
    cities = [_texts(made, step, "city")[0] for step in range(len(made.steps))]
    assert len(made.steps) > 1
    assert len(set(cities)) == len(cities)
    assert cities[0] == "Lima"


@pytest.fixture(scope="module")
def parts() -> TorchParts:
    from conductor.training.encoder import Bottom

    torch.manual_seed(1)
    return TorchParts([bottom_part(Bottom().eval()), *filler_parts()])


def test_an_untrained_filler_never_breaks_a_schema(parts: TorchParts) -> None:
    tokens = Tokens()
    filler = Filler(parts, tokens)
    steps = (_BOOK, _PAY, _BOOK)
    filled = filler.fill(read(parts, tokens, _REQUEST), steps, filler.index(steps))
    assert len(filled) == 3
    waiting = Waiting(len(steps))
    for number, step in enumerate(filled):
        for name, value in step.arguments.items():
            assert name in steps[number].inputs
            assert 0 <= value.confidence <= 1
            if isinstance(value.argument, StepRef):
                assert value.argument.step not in waiting.barred(number), "steps would wait for each other"
                waiting.add(number, value.argument.step)
            elif name == "guests":
                assert isinstance(value.argument, Literal)
                assert isinstance(value.argument.value, int)


def test_decoding_takes_the_likeliest_valid_value(parts: TorchParts) -> None:
    tokens = Tokens()
    steps = (_BOOK, _PAY)
    index = Filler(parts, tokens).index(steps)
    batch = tokens.batch([_REQUEST])
    tools = [index.tools[card.key] for card in steps]
    inputs = joint_inputs(_REQUEST, batch.spans[0], np.zeros((0, 0), dtype=np.float32), tools)
    count, length = len(inputs.items), len(batch.spans[0])
    scores = Scores(
        kind=np.full((count, KINDS), -9.0, dtype=np.float32),
        pointers=np.full((count, 4, length), -9.0, dtype=np.float32),
        option=np.zeros((count, 1), dtype=np.float32),
        reference=np.zeros((count, count), dtype=np.float32),
        span=np.zeros((length, length), dtype=np.float32),
    )
    wanted = {"restaurant": (SPAN, "Casa Lola"), "date": (FORM, "May 3, 2024"), "guests": (SPAN, "Casa")}
    for row, item in enumerate(inputs.items):
        if item.input is None:
            continue
        kind, text = wanted.get(item.input.path[0], (REFERENCE if item.step else ABSENT, ""))
        scores.kind[row, kind] = 9
        if text:
            start = _REQUEST.index(text)
            for pointer, at in ((0, start), (1, start + len(text) - 1)):
                piece = next(i for i, (left, right) in enumerate(batch.spans[0]) if left <= at < right)
                scores.pointers[row, pointer, piece] = 9
    first, second = decode(_REQUEST, batch.spans[0], inputs.items, scores, 2)
    assert first.arguments["restaurant"].argument == Literal(value="Casa Lola")
    assert first.arguments["date"].argument == Literal(value="2024-05-03")
    assert first.arguments["guests"].argument in (Literal(value=4), Literal(value=3), Literal(value=2024))
    assert set(first.arguments) == {"restaurant", "date", "guests"}
    assert second.arguments["booking_id"].argument == StepRef(step=0, field="booking_id")
    assert accepted([GoldStep(tool="pay", accept={})], [replace(second, arguments={})]), (
        "an empty call is right where nothing is asked for"
    )


def test_references_that_would_close_a_circle_go_elsewhere(parts: TorchParts) -> None:
    def card(name: str) -> ToolCard:
        return ToolCard(
            name=name,
            input_schema={"type": "object", "properties": {"takes": {"type": "string"}}, "required": ["takes"]},
            output_schema={"type": "object", "properties": {"gives": {"type": "string"}}},
        )

    tokens = Tokens()
    steps = (card("a"), card("b"), card("c"))
    index = Filler(parts, tokens).index(steps)
    spans = tokens.batch(["Do it"]).spans[0]
    inputs = joint_inputs("Do it", spans, np.zeros((0, 0), dtype=np.float32), [index.tools[x.key] for x in steps])
    count, length = len(inputs.items), len(spans)
    wanting = [row for row, item in enumerate(inputs.items) if item.input is not None]
    giving = {item.step: row for row, item in enumerate(inputs.items) if item.output is not None}
    scores = Scores(
        kind=np.full((count, KINDS), -9.0, dtype=np.float32),
        pointers=np.zeros((count, 4, length), dtype=np.float32),
        option=np.zeros((count, 1), dtype=np.float32),
        reference=np.zeros((count, count), dtype=np.float32),
        span=np.zeros((length, length), dtype=np.float32),
    )
    # Surest first: a takes from c, b from a; then c would like to take from a, then from b, and may from neither.
    for row, (best, next_best), sure in zip(wanting, ((2, 1), (0, 2), (0, 1)), (9.0, 6.0, 3.0), strict=True):
        scores.kind[row, REFERENCE] = 9
        scores.reference[row, giving[best]], scores.reference[row, giving[next_best]] = sure, sure - 2
    filled = decode("Do it", spans, inputs.items, scores, 3)
    found = [step.arguments["takes"].argument if step.arguments else None for step in filled]
    assert found == [StepRef(step=2, field="gives"), StepRef(step=0, field="gives"), None]


def test_steps_move_and_what_refers_to_them_follows() -> None:
    item = labelled(_example())
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        moved = shuffled(item, rng)
        names = [step.card.name for step in moved.steps]
        seen.add(names[0])
        reference = moved.steps[names.index("pay")].labels["booking_id",].reference
        assert reference == (names.index("book_table"), "booking_id")
        assert _texts(moved, names.index("book_table"), "restaurant") == ["Casa Lola"]
        strange = with_a_stranger(moved, _STRANGER, rng)
        names = [step.card.name for step in strange.steps]
        reference = strange.steps[names.index("pay")].labels["booking_id",].reference
        assert reference == (names.index("book_table"), "booking_id")
        assert not strange.steps[names.index("stranger")].labels
    assert seen == {"book_table", "pay"}


def test_calls_of_one_tool_keep_the_order_of_the_request() -> None:
    example = _example()
    item = labelled(replace(example, steps=(example.steps[0], replace(example.steps[0], arguments={}))))
    for seed in range(20):
        moved = shuffled(item, np.random.default_rng(seed))
        assert [_texts(moved, step, "restaurant") for step in range(2)] == [["Casa Lola"], []]


def test_what_a_forgotten_step_returns_is_unknown() -> None:
    found = [without_a_step(labelled(_example()), np.random.default_rng(seed)) for seed in range(8)]
    lonely = [item.steps[0].labels["booking_id",] for item in found if item.steps[0].card.name == "pay"]
    assert lonely
    assert all(label.reference is None and UNKNOWN in label.kinds for label in lonely)


def _data(folder: Path) -> Path:
    for name in ("nestools", "sealtools"):
        (folder / name).mkdir(parents=True)
        card = {
            "name": "weather",
            "description": "Weather of a city.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
        cities = ("Lima", "Oslo", "Rome", "Bonn", "Quito", "Turin", "Porto", "Ghent")
        rows = [{"id": i, "request": f"Weather in {city}", "tools": [card]} for i, city in enumerate(cities)]
        gold = [
            {"id": i, "steps": [{"tool": "weather", "arguments": {"city": city}}]} for i, city in enumerate(cities)
        ]
        for file, lines in (("requests", rows), ("gold", gold)):
            (folder / name / f"{file}.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    for name in ("simple_python", "multiple", "live_simple", "live_multiple"):
        (folder / "bfcl" / name).mkdir(parents=True)
        for file in ("requests", "gold"):
            (folder / "bfcl" / name / f"{file}.jsonl").write_text("")
    return folder


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    data = _data(tmp_path / "data")
    config = Config(batch=2, steps=16, evaluate_every=100, save_every_s=0.0, written=())
    whole = tmp_path / "whole"
    scores = train(config, data, whole)
    assert set(scores) <= {"nestools", "sealtools"}

    stopped = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        train(config, data, stopped, after_step=_stop_at(11))
    train(config, data, stopped, resume=True)
    assert (stopped / "filler.safetensors").read_bytes() == (whole / "filler.safetensors").read_bytes()


def _stop_at(last: int) -> Callable[[int], None]:
    def check(step: int) -> None:
        if step == last:
            raise KeyboardInterrupt

    return check


def test_a_checkpoint_comes_back_as_it_was_and_half_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    state: dict[str, Any] = {
        "model": {"w": torch.ones(2, 3)},
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}},
        "step": 3,
    }
    save_checkpoint(path, state)
    found = load_checkpoint(path)
    assert found["step"] == 3
    assert found["optimizer"]["state"][0]["step"] == 3
    assert torch.equal(found["model"]["w"], state["model"]["w"])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointInvalid, match=r"run\.checkpoint"):
        load_checkpoint(path)
    with pytest.raises(CheckpointInvalid, match=r"run\.checkpoint is of another run"), of_this_run(path):
        torch.nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 3)})

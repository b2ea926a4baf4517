"""What a contract lets in and what it makes of a raw output."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from agents.contract import Contract
from agents.sanitising import _CONTROL, _SURROGATE
from agents.spec import ManifestInvalid
from podium.errors import OutputContractBroken
from tests.unit.agents.specs import output_schema, spec

GOOD = {"said": "hi", "confidence_score": 0.5, "sources": []}


def test_the_hash_names_the_schema_not_its_spelling() -> None:
    original = spec()
    shuffled = spec(input_schema=dict(reversed(list(original.input_schema.items()))))
    other = spec(input_schema={**original.input_schema, "title": "x"})
    assert Contract.compile(original).input_sha256 == Contract.compile(shuffled).input_sha256
    assert Contract.compile(original).input_sha256 != Contract.compile(other).input_sha256


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        ({}, '"text" is a required property'),
        ({"text": 1}, "$.text: 1 is not of type"),
        ({"text": "x", "count": "2"}, '$.count: "2" is not of type'),
        ({"text": "x", "count": -1}, "$.count"),
        ({"text": "x", "more": 1}, "'more' was unexpected"),
        ({"text": "\ud800"}, "$: not JSON"),
        ({"text": math.nan}, "$: not JSON"),
        ({"text": "x" * 5_000_000}, "the limit is 4000000"),
    ],
)
def test_wrong_inputs_are_named_with_their_place(inputs: dict[str, Any], place: str) -> None:
    [violation] = Contract.compile(spec()).input_violations(inputs)
    assert place in violation
    assert len(violation) < 700


def test_good_inputs_pass_and_formats_count() -> None:
    assert Contract.compile(spec()).input_violations({"text": "x", "count": 3}) == []
    dated = spec(
        input_schema={
            "type": "object",
            "properties": {"on": {"type": "string", "format": "date"}},
            "additionalProperties": False,
        }
    )
    assert Contract.compile(dated).input_violations({"on": "2026-02-30"})
    assert not Contract.compile(dated).input_violations({"on": "2026-02-28"})


def test_violations_are_capped() -> None:
    many = spec(
        output_schema=output_schema({"said": {"type": "array", "items": {"type": "integer"}}}),
    )
    found = Contract.compile(many).output_violations({**GOOD, "said": ["x"] * 500})
    assert len(found) == 21
    assert found[-1] == "$: and more"


@pytest.mark.parametrize("schema", [{"format": "nonsense"}, {"$ref": "https://x.example/y"}, {"type": "text"}])
def test_an_unusable_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ManifestInvalid, match="output_schema of agent echo"):
        Contract.compile(spec(output_schema=output_schema({"said": schema})))


@pytest.mark.parametrize("raw", [GOOD, json.dumps(GOOD), json.dumps(GOOD).encode()])
def test_a_good_output_passes_unchanged(raw: object) -> None:
    contract = Contract.compile(spec())
    sanitised = contract.sanitise(raw)
    assert sanitised.output == GOOD
    assert sanitised.repairs == ()
    assert contract.output_violations(sanitised.output) == []


def test_control_characters_go_and_are_on_record_but_line_ends_and_emoji_stay() -> None:
    raw = {**GOOD, "said": "a\x00b\x1b[31mc\nd\te 😀 \u202eevil"}
    sanitised = Contract.compile(spec()).sanitise(raw)
    assert sanitised.output["said"] == "ab[31mc\nd\te 😀 evil"
    assert sanitised.repairs == ("removed 3 control characters from $.said",)


def _cycle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = [value] * 10
    return value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("The answer is 42.", "not one JSON object"),
        ("```json\n" + json.dumps(GOOD) + "\n```", "not one JSON object"),
        (json.dumps(GOOD) + " That is all.", "not one JSON object"),
        (b"\xff\xfe", "not UTF-8"),
        ("[1, 2]", "list, not an object"),
        (None, "NoneType, not an object"),
        ({**GOOD, "said": "\ud83d"}, "lone surrogate"),
        ('{"said": "\\ud83d"}', "lone surrogate"),
        ({"\ud83d": 1}, "key of"),
        ({7: 1}, "key of"),
        ({**GOOD, "confidence_score": math.nan}, "not a JSON number"),
        ({**GOOD, "confidence_score": -math.inf}, "not a JSON number"),
        ('{"confidence_score": NaN}', "not a JSON number"),
        ('{"confidence_score": 1e999}', "not a JSON number"),
        ('{"a": 1, "a": 2}', "repeated"),
        ({**GOOD, "said": Decimal(1)}, "Decimal, which is not JSON"),
        ({**GOOD, "said": {1, 2}}, "set, which is not JSON"),
        ({**GOOD, "said": "x" * 1_000_001}, "larger than 1000000 bytes"),
        ({**GOOD, "said": 10**5000}, "cannot be written"),
        ("x" * 1_000_001, "larger than 1000000 bytes"),
        ("[" * 100_000, "nested deeper"),
        (_cycle(), "nested deeper|larger than"),
    ],
)
def test_what_cannot_be_kept_is_refused(raw: object, reason: str) -> None:
    with pytest.raises(OutputContractBroken, match=reason):
        Contract.compile(spec()).sanitise(raw)


def test_no_printable_character_is_one_that_goes() -> None:
    # Printable texts are taken without a closer look.
    characters = "".join(map(chr, range(0x110000)))
    suspect = {*_CONTROL.findall(characters), *_SURROGATE.findall(characters)}
    assert len(suspect) == 2120
    assert not any(character.isprintable() for character in suspect)


def test_the_canonical_form_comes_with_the_output() -> None:
    sanitised = Contract.compile(spec()).sanitise({"b": 1, "a": "x\x00"})
    assert sanitised.data == b'{"a":"x","b":1}'


def test_depth_is_bounded_at_the_limit() -> None:
    contract = Contract.compile(spec(limits={"max_depth": 3}))
    assert contract.sanitise({"a": [1]}).output == {"a": [1]}
    with pytest.raises(OutputContractBroken, match="deeper than 3"):
        contract.sanitise({"a": [[1]]})


def test_a_declared_hook_may_unwrap_and_is_on_record() -> None:
    contract = Contract.compile(spec(output_hook="agents.output_hooks:unwrap_fenced_json"))
    fenced = "Here you are:\n```json\n" + json.dumps(GOOD) + "\n```\nGlad to help."
    sanitised = contract.sanitise(fenced)
    assert sanitised.output == GOOD
    assert sanitised.repairs == ("took the JSON out of a Markdown fence, dropping 28 characters around it",)
    assert contract.sanitise(json.dumps(GOOD)).repairs == ()
    with pytest.raises(OutputContractBroken, match="not one JSON object"):
        contract.sanitise("```json\n{}\n``` or ```json\n{}\n```")


def test_a_hook_that_is_not_there_is_refused() -> None:
    with pytest.raises(ManifestInvalid, match="cannot be imported"):
        Contract.compile(spec(output_hook="agents.output_hooks:no_such"))


def failing_hook(raw: object) -> tuple[object, tuple[str, ...]]:
    raise KeyError(type(raw).__name__)


def test_a_hook_that_fails_is_a_broken_output() -> None:
    contract = Contract.compile(spec(output_hook="tests.unit.agents.test_contract:failing_hook"))
    with pytest.raises(OutputContractBroken, match="the output hook failed: KeyError"):
        contract.sanitise(GOOD)

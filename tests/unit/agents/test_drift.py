"""Type drift by name, the classic one first: a list that comes back as text with commas in it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from agents.drift import drifts
from agents.invocation import Invocation
from agents.registry import RegisteredAgent
from agents.validation import validate_agent
from podium.errors import AgentUnreachable, InvalidRequest
from tests.unit.agents.specs import context, output_schema, spec

FIELDS: Mapping[str, Any] = {
    "cities": {"type": "array", "items": {"type": "string"}},
    "size": {"type": "number"},
    "count": {"type": "integer"},
    "ok": {"type": "boolean"},
    "code": {"type": "string"},
    "place": {
        "type": "object",
        "properties": {"lat": {"type": "number"}},
        "required": ["lat"],
        "additionalProperties": False,
    },
    "day": {"type": "string", "format": "date"},
    "at": {"type": "string", "format": "date-time"},
    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
}
GOOD: Mapping[str, Any] = {
    "cities": ["Bern", "Basel"],
    "size": 2,
    "count": 3,
    "ok": True,
    "code": "007",
    "place": {"lat": 1.5},
    "day": "2026-07-01",
    "at": "2026-07-01T08:00:00Z",
    "note": None,
    "confidence_score": 1,
    "sources": [],
}


class _Answers:
    """An engine that answers every call with the same output, or raises."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.calls = 0

    async def invoke(self, invocation: Invocation) -> Any:
        await asyncio.sleep(0)
        self.calls += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def _found(output: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(drift.kind, drift.place) for drift in drifts(output_schema(FIELDS), output)]


def test_a_list_returned_as_comma_joined_text_is_reported() -> None:
    agent = RegisteredAgent.of(spec(output_schema=output_schema(FIELDS)))
    engine = _Answers({**GOOD, "cities": "Bern, Basel, Zug"})
    report = asyncio.run(validate_agent(agent, engine, context(), count=20))
    assert not report.passed
    assert report.answered == 0
    assert report.broken == engine.calls
    (drift,) = report.drift
    assert (drift.kind, drift.place, drift.times) == ("LIST_AS_TEXT", "$.cities", engine.calls)
    assert drift.message == "a list came as text: 'Bern, Basel, Zug' where array is declared"
    assert report.violations[0].startswith("OUTPUT_CONTRACT_BROKEN: $.cities")


@pytest.mark.parametrize(
    ("change", "kind", "place"),
    [
        ({"size": "2.5"}, "NUMBER_AS_TEXT", "$.size"),
        ({"size": "1,234.50"}, "NUMBER_AS_TEXT", "$.size"),
        ({"count": "3"}, "NUMBER_AS_TEXT", "$.count"),
        ({"place": '{"lat": 1.5}'}, "OBJECT_AS_TEXT", "$.place"),
        ({"code": None}, "NULL_FOR_MISSING", "$.code"),
        ({"ok": "true"}, "BOOLEAN_AS_TEXT", "$.ok"),
        ({"ok": "No"}, "BOOLEAN_AS_TEXT", "$.ok"),
        ({"ok": 1}, "BOOLEAN_AS_NUMBER", "$.ok"),
        ({"count": 3.0}, "INTEGER_WITH_POINT", "$.count"),
        ({"count": 3.5}, "FRACTION_FOR_INTEGER", "$.count"),
        ({"code": 7}, "TEXT_AS_NUMBER", "$.code"),
        ({"day": "01/07/2026"}, "DATE_FORMAT", "$.day"),
        ({"day": "2026-7-1"}, "DATE_FORMAT", "$.day"),
        ({"at": "2026-07-01 08:00"}, "DATE_FORMAT", "$.at"),
        ({"confidence_score": 95}, "CONFIDENCE_OUT_OF_RANGE", "$.confidence_score"),
        ({"confidence_score": -0.1}, "CONFIDENCE_OUT_OF_RANGE", "$.confidence_score"),
        ({"cities": {"a": 1}}, "ONE_FOR_LIST", "$.cities"),
        ({"size": [2]}, "LIST_FOR_ONE", "$.size"),
        ({"cities": ["Bern", 7]}, "TEXT_AS_NUMBER", "$.cities[]"),
        ({"place": {}}, "FIELD_MISSING", "$.place.lat"),
        ({"place": {"lat": 1.5, "lon": 2}}, "UNKNOWN_FIELD", "$.place.lon"),
        ({"place": "in the middle"}, "OTHER_TYPE", "$.place"),
        ({"size": True}, "OTHER_TYPE", "$.size"),
        ({"note": 7}, "TEXT_AS_NUMBER", "$.note"),
    ],
)
def test_every_drift_has_its_name(change: Mapping[str, Any], kind: str, place: str) -> None:
    assert _found({**GOOD, **change}) == [(kind, place)]


@pytest.mark.parametrize(
    ("field", "kind"),
    [("confidence_score", "CONFIDENCE_MISSING"), ("sources", "SOURCES_MISSING"), ("code", "FIELD_MISSING")],
)
def test_what_is_left_out_is_told(field: str, kind: str) -> None:
    assert _found({name: value for name, value in GOOD.items() if name != field}) == [(kind, f"$.{field}")]


def test_an_output_as_declared_has_none() -> None:
    assert _found(GOOD) == []
    assert _found({**GOOD, "size": 2.0, "note": "n", "confidence_score": 0.5}) == []


def test_references_and_open_places() -> None:
    schema = {
        "type": "object",
        "properties": {"many": {"$ref": "#/$defs/many"}, "open": {}},
        "$defs": {"many": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": {"type": "number"},
    }
    assert [drift.kind for drift in drifts(schema, {"many": "1,2", "open": [1], "else": 2})] == ["LIST_AS_TEXT"]
    assert [drift.place for drift in drifts(schema, {"else": "2"})] == ["$.*"]
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert list(drifts(loop, {"x": 1})) == []


def test_a_trial_ends_when_it_is_told_to() -> None:
    agent = RegisteredAgent.of(spec(output_schema=output_schema(FIELDS)))
    engine, tried = _Answers(dict(GOOD)), list[int]()
    report = asyncio.run(
        validate_agent(
            agent,
            engine,
            context(),
            count=50,
            left_s=lambda: 9.0 if engine.calls < 5 else 0.0,
            progress=tried.append,
        )
    )
    assert (report.answered, report.cut_short, report.passed) == (5, True, True)
    assert tried == [1, 2, 3, 4, 5]


def test_refusals_are_fine_foreign_errors_are_not_and_nobody_there_is_told() -> None:
    agent = RegisteredAgent.of(spec(sla={"timeout": timedelta(seconds=1)}))
    refused = asyncio.run(validate_agent(agent, _Answers(InvalidRequest("no")), context(), count=4))
    assert refused.passed
    assert refused.answered == 0
    assert set(refused.refused) == {"INVALID_REQUEST"}
    crashed = asyncio.run(validate_agent(agent, _Answers(KeyError("x")), context(), count=4))
    assert crashed.violations[0].startswith("KeyError")
    with pytest.raises(AgentUnreachable):
        asyncio.run(validate_agent(agent, _Answers(AgentUnreachable("gone")), context(), count=4))

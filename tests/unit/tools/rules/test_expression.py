"""CEL rules: values in, typed errors out, and nothing that can run for long."""

import contextlib
import datetime as dt
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.rules import values as rule_values
from tools.rules.errors import (
    RuleError,
    RuleEvaluationError,
    RuleInputError,
    RuleResultError,
    RuleSyntaxError,
    RuleTooCostly,
)
from tools.rules.expression import MAX_EXPRESSION_CHARS, CelRule


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("a + b", {"a": 1, "b": 2}, 3),
        ("order.total > 100", {"order": MappingProxyType({"total": Decimal("100.01")})}, True),
        ("lines.all(l, l.amount >= 0.0)", {"lines": ({"amount": Decimal(1)}, {"amount": 0.5})}, True),
        ("day < timestamp('2026-01-02T00:00:00Z')", {"day": dt.date(2026, 1, 1)}, True),
        (
            "at - before == duration('3600s')",
            {
                "at": dt.datetime(2026, 1, 1, 9, tzinfo=dt.timezone(dt.timedelta(hours=8))),
                "before": dt.datetime(2026, 1, 1, 0, tzinfo=dt.UTC),
            },
            True,
        ),
        ("has(x.y)", {"x": {}}, False),
        ("length(name)", {"name": "华东"}, 2),
        ("x == null", {"x": None}, True),
        ("b == b'ab'", {"b": b"ab"}, True),
        ("region in ['east_china', 'south_china']", {"region": "east_china"}, True),
    ],
)
def test_evaluates(expression, values, expected):
    assert CelRule.compile(expression).evaluate(values) == expected


def test_names_its_variables():
    assert CelRule.compile("a.b > c && true").variables == {"a", "c"}


@pytest.mark.parametrize(
    ("expression", "line", "column"),
    [("1 +", 1, 4), ("a &&\n (b", 2, 4), ("", 1, 1), ("a\x00b", 1, 2), ("ab\ud800", 1, 3)],
)
def test_syntax_error_has_its_position(expression, line, column):
    with pytest.raises(RuleSyntaxError) as caught:
        CelRule.compile(expression)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.code == "RULE_SYNTAX"


@pytest.mark.parametrize(
    ("expression", "values", "reason"),
    [
        ("x.y", {"x": {}}, "missing_field"),
        ("y", {}, "undefined_name"),
        ("nope(1)", {}, "undefined_name"),
        ("x > 1", {"x": "s"}, "type_mismatch"),
        ("1 / x", {"x": 0}, "division_by_zero"),
        ("x + 1", {"x": 2**63 - 1}, "overflow"),
        ("x.matches('(')", {"x": "a"}, "invalid_value"),
    ],
)
def test_evaluation_errors_are_typed(expression, values, reason):
    with pytest.raises(RuleEvaluationError) as caught:
        CelRule.compile(expression).evaluate(values)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, 2**63]}, "x.a[1]"),
        (dt.datetime(2026, 1, 1), "x"),  # noqa: DTZ001 - a naive time is what is refused
        ({1: 2}, "x"),
        (object(), "x"),
        ({"s": "\ud800"}, "x.s"),
        ({1, 2}, "x"),
    ],
)
def test_refuses_what_cel_cannot_hold(value, path):
    with pytest.raises(RuleInputError) as caught:
        CelRule.compile("true").evaluate({"x": value})
    assert caught.value.path == path


def test_holds_never_uses_truthiness():
    assert CelRule.compile("x > 1").holds({"x": 2}) is True
    with pytest.raises(RuleResultError):
        CelRule.compile("x").holds({"x": 1})


def test_size_limits():
    with pytest.raises(RuleTooCostly):
        CelRule.compile("1" + " " * MAX_EXPRESSION_CHARS)
    rule = CelRule.compile("size(x) > 0")
    with pytest.raises(RuleTooCostly):
        rule.evaluate({"x": [0] * (rule_values.MAX_VALUES + 1)})
    with pytest.raises(RuleTooCostly):
        rule.evaluate({"x": "a" * (rule_values.MAX_TEXT_CHARS + 1)})
    deep: object = 1
    for _ in range(rule_values.MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(RuleTooCostly):
        rule.evaluate({"x": deep})


def test_nested_loops_are_bounded_and_chained_ones_are_not_counted_as_nested():
    nested = CelRule.compile("x.all(i, x.all(j, x.all(k, i + j + k >= 0)))")
    assert nested.loop_depth == 3
    assert nested.evaluate({"x": [1, 2, 3]}) is True
    with pytest.raises(RuleTooCostly):
        nested.evaluate({"x": list(range(100))})
    searching = CelRule.compile("x.all(i, !t.contains(i))")
    with pytest.raises(RuleTooCostly):
        searching.evaluate({"x": ["zz"] * 10_000, "t": "a" * 900_000})
    chained = CelRule.compile("x.all(i, i >= 0) && x.exists(i, i == 4)")
    assert chained.loop_depth == 1
    assert chained.evaluate({"x": list(range(50_000))}) is True
    building = CelRule.compile("size(x.filter(i, i > 1)) > 0")
    assert building.loop_depth == 2
    assert building.evaluate({"x": list(range(1000))}) is True
    with pytest.raises(RuleTooCostly):
        building.evaluate({"x": list(range(5000))})
    assert CelRule.compile("'x.all(i, x.all(' == y").loop_depth == 0


def test_a_macro_with_a_comment_in_it_still_counts():
    assert CelRule.compile("x.all(i, // why )\n x.all // how\n (j, j == i))").loop_depth == 2


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3))
def test_any_text_compiles_or_fails_with_a_rule_error(expression, values):
    with contextlib.suppress(RuleError):
        CelRule.compile(expression).evaluate(values)

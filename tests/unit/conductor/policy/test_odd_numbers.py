"""Numbers that no float holds, and schemas that are none, end no plan."""

import math

import pytest

from conductor.policy.values.fields import input_fields
from conductor.policy.values.numbers import find_numbers, in_unit


@pytest.mark.parametrize(
    "text",
    ["9" * 400 + "/3", "9" * 5_000 + "/3", "1/" + "9" * 400, "1e999", "9" * 400, "one " + "hundred " * 300],
    ids=["long fraction", "beyond the int limit", "long divisor", "exponent", "digits", "words"],
)
def test_what_is_too_large_for_a_float_is_no_infinite_number(text: str) -> None:
    found = find_numbers(f"convert {text} and 5 dollars")
    assert all(math.isfinite(number.value) for number in found)
    assert found[-1].value == 5


def test_fractions_are_still_read() -> None:
    assert [number.value for number in find_numbers("1/2 cup, -3/4 and 1/0")] == [0.5, -0.75]


def test_a_unit_is_not_converted_beyond_what_a_float_holds() -> None:
    assert in_unit(2.0, "hour", "minute") == 120.0
    assert in_unit(1e308, "hour", "minute") is None


@pytest.mark.parametrize("required", [None, 5, "city", {"city": True}, [1, None]])
def test_a_list_of_required_arguments_that_is_none_requires_nothing(required: object) -> None:
    fields = input_fields({"properties": {"city": {"type": "string"}}, "required": required})
    assert [(field.path, field.required) for field in fields] == [(("city",), False)]

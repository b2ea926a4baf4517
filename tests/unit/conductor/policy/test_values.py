"""What pieces of a request are worth to an argument: numbers, dates, places, lists, and hostile ones."""

import random
from typing import Any

import pytest

from conductor.policy.values.dates import find_dates, find_times, moment_of
from conductor.policy.values.fields import InputField, input_field, input_fields
from conductor.policy.values.forms import as_it_stands, in_form, joined, split_items
from conductor.policy.values.numbers import find_numbers
from conductor.policy.values.places import city_and_region, currency


def _field(name: str = "value", **schema: Any) -> InputField:
    return input_field((name,), schema, required=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,500,000", 1_500_000),
        ("$5m", 5_000_000),
        ("5m", 5),
        ("298K", 298),
        ("two dozen", 24),
        ("one hundred and five", 105),
        ("twenty-five", 25),
        ("2.5 million", 2_500_000),
        ("-3.5", -3.5),
        ("3/4", 0.75),
        ("1e3", 1000),
    ],
)
def test_numbers_are_read_in_every_spelling(text: str, value: float) -> None:
    assert [mention.value for mention in find_numbers(text)] == [value]


@pytest.mark.parametrize("text", ["1e999", "9" * 400, "9" * 5000 + "/3", "9" * 400 + "/0", "/0 1/0"])
def test_a_number_no_float_holds_is_none(text: str) -> None:
    assert all(abs(mention.value) < 1e308 for mention in find_numbers(text))


def test_a_percentage_is_itself_or_a_share_as_the_model_chooses() -> None:
    field = _field("rate", type="number", description="annual interest rate")
    assert as_it_stands("5%", field) == 5
    assert in_form("5%", field) == 0.05


def test_hours_become_the_minutes_that_the_description_names() -> None:
    assert in_form("2 hours", _field("duration", type="integer", description="in minutes")) == 120


def test_a_number_outside_the_schema_is_no_value() -> None:
    assert as_it_stands("12", _field(type="integer", maximum=10)) is None
    assert as_it_stands("2.5", _field(type="integer")) is None
    assert as_it_stands("5", _field(type="integer", enum=[1, 2])) is None


@pytest.mark.parametrize(
    ("text", "description", "value"),
    [
        ("April 15, 2024", "date of travel", "2024-04-15"),
        ("the 9th of march 2023", "Format: DD/MM/YYYY", "09/03/2023"),
        ("15.4.2024", "e.g. 04/25/2023", "04/15/2024"),
        ("2024年4月15日", "YYYY-MM-DD", "2024-04-15"),
        ("March 20, 2024 at 6:00 pm", "YYYY-MM-DD HH:mm:ss", "2024-03-20 18:00:00"),
        ("11PM", "such as 'YYYY-MM-DD HH:MM:SS' or 'HH:MM'", "23:00"),
        ("2023.10.1 to 2023.10.7", "formatted as 'YYYY-MM-DD to YYYY-MM-DD'", "2023-10-01 to 2023-10-07"),
        ("February 30, 2024", "date of travel", None),
    ],
)
def test_dates_take_the_form_that_the_description_asks_for(text: str, description: str, value: str | None) -> None:
    assert in_form(text, _field("date", type="string", description=description)) == value


def test_a_date_without_a_year_takes_the_only_year_of_the_request() -> None:
    field = _field("date", type="string", description="departure date")
    request = "I fly on May 3 and return on May 9, 2025"
    assert in_form("May 3", field, request) == "2025-05-03"
    assert in_form("May 3", field, "I fly on May 3") is None


def test_an_argument_about_neither_date_nor_time_has_no_moment() -> None:
    assert moment_of("city", {"description": "name of the city"}) is None


def test_places_get_their_region_and_unknown_ones_none() -> None:
    assert city_and_region("san fran") == "San Francisco, CA"
    assert city_and_region("Pittsburg PA") == "Pittsburg, PA"
    assert city_and_region("Berkeley, California") == "Berkeley, CA"
    assert city_and_region("Newark") is None, "there are several"
    assert city_and_region("a nice place") is None
    assert currency("US dollars") == "USD"


def test_lists_are_split_and_conform_to_their_items() -> None:
    assert split_items("flour, sugar, and cocoa powder") == ["flour", "sugar", "cocoa powder"]
    numbers = _field(type="array", items={"type": "integer"})
    assert as_it_stands("320, 310 and 330", numbers) == [320, 310, 330]
    assert as_it_stands("a, b", numbers) is None
    assert joined(["Red", "blue"], _field(type="array", items={"type": "string", "enum": ["red", "blue"]})) == [
        "red",
        "blue",
    ]
    assert joined(["skull", "the femur"], _field(type="string")) == "skull, femur"


def test_options_are_spelled_as_the_schema_spells_them_and_nothing_else_is_valid() -> None:
    field = _field(type="string", enum=["Full_Size", "compact"])
    assert as_it_stands("full size", field) == "Full_Size"
    assert as_it_stands("huge", field) is None


def test_options_named_in_a_description_are_offered() -> None:
    field = _field(type="string", description="type of backup, such as 'full' or 'incremental'")
    assert [option.value for option in field.options] == ["full", "incremental"]
    assert not field.strict


def test_objects_are_followed_by_their_fields() -> None:
    schema = {
        "type": "object",
        "properties": {
            "where": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "n": {},
        },
        "required": ["where"],
    }
    found = {field.path: field.required for field in input_fields(schema)}
    assert found == {("where",): True, ("where", "city"): True, ("n",): False}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": ["string", "null"], "enum": "x"}}, "required": None},
        {"properties": {"a": {"type": {}, "items": [1], "description": 5, "default": [1]}}, "required": 5},
        {"properties": ["a"]},
        {"properties": {"a": None, "b": {"minimum": "3", "type": "number"}}},
    ],
)
def test_schemas_of_any_shape_are_read(schema: dict[str, Any]) -> None:
    for field in input_fields(schema):
        as_it_stands("5", field)
        in_form("5", field)


def test_no_text_makes_the_normalisers_fail() -> None:
    seed = 11
    rng = random.Random(seed)
    letters = "0123456789/-.:,% eE$kmJanfebMarch年月日一万'\"()[]{}\\\n"
    fields = [
        _field("date", type="string", description="YYYY-MM-DD HH:mm or 'HH:MM'"),
        _field("n", type="number", description="in meters"),
        _field("city", type="string", description="City, State"),
        _field("xs", type="array", items={"type": "number"}),
        _field("any"),
    ]
    for _ in range(400):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 40)))
        try:
            find_dates(text)
            find_times(text)
            for field in fields:
                as_it_stands(text, field)
                in_form(text, field, text)
        except Exception as error:
            error.add_note(f"seed {seed}, text {text!r}")
            raise

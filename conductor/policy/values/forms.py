"""A piece of the request as a value that an argument's schema takes.

A piece can be meant in two ways, as it stands or turned into the form the argument asks for ("5%" is 5 or 0.05,
"San Francisco" is itself or "San Francisco, CA"); the model decides which, from the description.
"""

import re
from collections.abc import Sequence
from typing import Any

from conductor.policy.values.dates import find_dates, find_times, write
from conductor.policy.values.fields import InputField, Option
from conductor.policy.values.numbers import NumberMention, find_numbers, in_unit, tidy
from conductor.policy.values.places import city_and_region, country_code, currency

_EDGES = " \t\r\n'\"`\u2018\u2019\u201c\u201d,;:.!?"
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_SPLIT = re.compile(r"\s*(?:[,;、，]\s*(?:and\s+|or\s+|&\s*)?|\s+and\s+|\s+or\s+|\s+&\s+|\s+to\s+(?=[-\d$]))\s*")
_PLACE = re.compile(r"city|state|country|location|[A-Z][a-z]+, [A-Z]{2}\b|destination|origin", re.IGNORECASE)
_LONG_STATE = re.compile(r"full name|not abbreviated|'[A-Z][\w ]+, (?:California|New York|Texas)'")


def as_it_stands(span: str, field: InputField) -> Any:
    """The value of `span` taken literally; None where the schema does not take it."""
    if field.type in ("integer", "number"):
        number = _number(span)
        return None if number is None else number_as_it_stands(number, field)
    if field.type == "array":
        return items_as_they_stand(split_items(span), field)
    text = clean(span)
    if field.strict:
        option = option_named(text, field.options)
        return None if option is None else option.value
    if field.type in ("boolean", "object") or not text:
        return None
    return text


def in_form(span: str, field: InputField, request: str = "") -> Any:
    """The value of `span` in the form that the argument asks for; None where it asks for none.

    Args:
        span: A piece of the request.
        field: The argument.
        request: The whole request, for the year of a date that has none.
    """
    if field.type in ("integer", "number"):
        number = _number(span)
        return None if number is None else number_in_form(number, field)
    if field.type == "array":
        items = split_items(span)
        formed = [in_form_of_text(item, field, request) or clean(item) for item in items]
        return formed if field.item_type in ("string", "any", "") and not field.strict and all(formed) else None
    if field.type in ("boolean", "object") or field.strict:
        return None
    return in_form_of_text(span, field, request)


def in_form_of_text(span: str, field: InputField, request: str) -> str | None:
    """A string in the form that the argument asks for."""
    if field.moment is not None:
        dates = find_dates(span, day_first=field.moment.day_first) or _dates_in_context(span, field, request)
        times = find_times(span)
        if field.moment.joint and len(dates) > 1:
            ends = [write(field.moment, date.day, None) for date in dates[:2]]
            return field.moment.joint.join(end for end in ends if end)
        written = write(field.moment, dates[0].day if dates else None, times[0] if times else None)
        if written is not None:
            return written
        return None
    about = f"{field.words} {field.description}"
    if "currency" in about.lower():
        code = currency(clean(span))
        if code:
            return code
    if "alpha-2" in about.lower():
        code = country_code(clean(span))
        if code:
            return code
    if mentions_place(field):
        place = city_and_region(clean(span), long_states=_LONG_STATE.search(about) is not None)
        if place:
            return place
    return plain_form(span)


def mentions_place(field: InputField) -> bool:
    """Whether the argument may be a city with its state or country."""
    return _PLACE.search(f"{field.words} {field.description}") is not None


def plain_form(span: str) -> str | None:
    """A noun in the singular without its article, or an enumeration with commas; None where that is no change."""
    stripped = _ARTICLE.sub("", clean(span))
    if "^" in stripped:
        return stripped.replace("^", "**")
    if len(items := split_items(stripped)) > 1:
        return ", ".join(items)
    return singular(stripped)


def items_as_they_stand(items: Sequence[str], field: InputField) -> list[Any] | None:
    """The items of a list by the schema of its items; None where one does not conform."""
    if not items:
        return None
    if field.item_type in ("integer", "number"):
        return _numbers(items, field)
    if field.item_type in ("array", "object", "boolean"):
        return None
    cleaned = [_ARTICLE.sub("", clean(item)) for item in items]
    if field.strict:
        options = [option_named(item, field.options) for item in cleaned]
        return [option.value for option in options if option] if all(options) else None
    if field.item_type in ("any", ""):
        plain = _numbers(items, field)
        if plain is not None and all(re.fullmatch(r"[-$]?[\d.,]+%?", item.strip()) for item in items):
            return plain
    return cleaned if all(cleaned) else None


def joined(items: Sequence[str], field: InputField) -> Any:
    """Several pieces of the request as one value: a list, or a string that names them all."""
    if field.type == "array":
        return items_as_they_stand(items, field)
    if field.type in ("string", "any") and not field.strict:
        return ", ".join(_ARTICLE.sub("", clean(item)) for item in items)
    return None


def split_items(span: str) -> list[str]:
    """The items of an enumeration in words or in brackets."""
    plain = span.strip().strip("[](){}")
    return [item for item in (part.strip(" '\"`") for part in _SPLIT.split(plain)) if item]


def clean(span: str) -> str:
    """A piece of text without quotes, spaces and punctuation around it; brackets that belong to it stay."""
    text = span.strip(_EDGES)
    text = text.removesuffix("'s").removesuffix("\u2019s")
    if text.endswith(")") and "(" not in text:
        text = text.removesuffix(")")
    if text.startswith("(") and ")" not in text:
        text = text.removeprefix("(")
    return " ".join(text.split())


def singular(text: str) -> str | None:
    """The text with its last word in the singular; None where it has no plural."""
    if len(text) > 3 and re.search(r"[a-z]ies$", text):
        return text[:-3] + "y"
    return text[:-1] if len(text) > 3 and re.search(r"[b-df-hj-np-rtv-ze]s$", text) else None


def option_named(text: str, options: Sequence[Option]) -> Option | None:
    """The option that `text` spells, whatever its case, spaces and hyphens."""
    wanted = _plain(text)
    return next((option for option in options if _plain(option.text) == wanted), None)


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-]+", "", text.lower())


def _number(span: str) -> NumberMention | None:
    found = [mention for mention in find_numbers(span) if not mention.loose] or list(find_numbers(span))
    return found[0] if found else None


def number_as_it_stands(number: NumberMention, field: InputField) -> int | float | None:
    """A number of the request as the schema takes it; None where it does not."""
    return _numeric(number.value, field)


def number_in_form(number: NumberMention, field: InputField) -> int | float | None:
    """A number in the unit that the argument asks for: a share for a percentage, minutes for hours."""
    if field.type == "number" and (number.percent or not number.unit):
        return _numeric(number.value / 100, field)
    for wanted in field.units:
        converted = in_unit(number.value, number.unit, wanted)
        if converted is not None:
            return _numeric(converted, field)
    return None


def _numeric(value: float, field: InputField) -> int | float | None:
    number = tidy(value)
    if field.type == "integer" and not isinstance(number, int):
        return None
    low, high = field.schema.get("minimum"), field.schema.get("maximum")
    if (isinstance(low, int | float) and number < low) or (isinstance(high, int | float) and number > high):
        return None
    if field.strict and not any(option.value == number for option in field.options):
        return None
    return number


def _numbers(items: Sequence[str], field: InputField) -> list[Any] | None:
    found = [_number(item) for item in items]
    if not all(found):
        return None
    values = [tidy(number.value) for number in found if number]
    if field.item_type == "integer" and not all(isinstance(value, int) for value in values):
        return None
    return values


def _dates_in_context(span: str, field: InputField, request: str) -> tuple[Any, ...]:
    """The date of a span without a year, by the only year that the request names."""
    at = request.find(span)
    if at < 0 or field.moment is None:
        return ()
    found = find_dates(request, day_first=field.moment.day_first)
    return tuple(date for date in found if date.start < at + len(span) and at < date.end)

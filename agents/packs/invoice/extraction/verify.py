"""Check an extracted field against the OCR text at its box: nothing may be answered that is not on the page."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from agents.packs.invoice.extraction.amounts import readings
from agents.packs.invoice.extraction.currency import currencies_in
from agents.packs.invoice.extraction.dates import parse_text
from agents.packs.invoice.extraction.folding import compacted, fold
from agents.packs.invoice.extraction.marks import CODES, COUNTRY_CURRENCY, COUNTRY_WORDS
from agents.packs.invoice.extraction.model import Field
from tools.document.reading import Box, DocumentReading

_NUMBER = re.compile(r"\d[\d.,' ]*")
"""What `readings` takes; a fraction such as ¼ is no amount."""


def verify_in_text(reading: DocumentReading, field: Field) -> bool:
    """True when the field's source text stands in the OCR lines at its box and yields its value.

    A field without a value has nothing to verify and is True.
    """
    if field.value is None:
        return True
    if field.box is None or field.page is None:
        return False
    texts = [
        line.text
        for page in reading.pages
        if page.page == field.page
        for line in page.lines
        if _touch(line.box, field.box)
    ]
    if not all(any(piece in text for text in texts) for piece in field.source_text.split("\n")):
        return False
    return value_follows(field)


def verify_value(reading: DocumentReading, field: Mapping[str, Any]) -> bool:
    """`verify_in_text` for a field in the form of `Field.to_json`, as it travels between agents.

    The form does not say the kind of value, so the value's own form does.
    """
    box, value = field.get("box"), field.get("value")
    plain = Field(
        name="",
        kind="text",
        value=value,
        confidence=0.0,
        page=field.get("page"),
        box=(box[0], box[1], box[2], box[3]) if box else None,
        source_text=str(field.get("source_text", "")),
    )
    return any(verify_in_text(reading, replace(plain, kind=kind)) for kind in _kinds_of(value or ""))


def _kinds_of(value: str) -> list[str]:
    kinds = ["text"]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        kinds.append("date")
    if re.fullmatch(r"-?\d+(?:\.\d+)?", value):
        kinds.append("amount")
    if value in CODES:
        kinds.append("currency")
    return kinds


def value_follows(field: Field) -> bool:
    """True when the field's value can be read from its source text alone."""
    value = field.value or ""
    if field.kind == "date":
        return value in {day.isoformat() for day in parse_text(field.source_text)}
    if field.kind == "amount":
        return _amount_follows(Decimal(value), field.source_text)
    if field.kind == "currency":
        return _currency_follows(value, field.source_text)
    return compacted(value) == compacted(field.source_text) or compacted(value) in compacted(field.source_text)


def _amount_follows(value: Decimal, source: str) -> bool:
    sums = {Decimal(0)}
    for piece in source.split("\n"):
        options = {option[0] for option in _numbers(piece)}
        sums = {total + sign * option for total in sums for option in options for sign in (1, -1)}
    return value in sums


def _numbers(piece: str) -> list[tuple[Decimal, str, int]]:
    plain = fold(piece).plain
    digits = [index for index, char in enumerate(plain) if char.isdigit()]
    number = plain[digits[0] : digits[-1] + 1] if digits else ""
    return readings(number) if _NUMBER.fullmatch(number) else []


def _currency_follows(code: str, source: str) -> bool:
    plain = fold(source).plain
    if code in currencies_in(plain):
        return True
    countries = {country for country, currency in COUNTRY_CURRENCY.items() if currency == code}
    named = any(word in plain for country in countries for word in COUNTRY_WORDS.get(country, ()))
    prefixed = compacted(source).removeprefix("iban")[:2].upper() in countries
    return named or prefixed


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]

"""Readings of drawn invoices that misled the extraction once: what it is sure of must be right."""

import json
from pathlib import Path

import pytest

from agents.packs.invoice.extraction import REVIEW_THRESHOLD, extract, verify_in_text
from agents.packs.invoice.extraction.folding import compacted
from tools.document.reading import DocumentReading

CASES = sorted((Path(__file__).parents[3] / "cases" / "invoices").glob("*.json"))


def load(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    return case, DocumentReading.from_json(case["reading"])


def is_right(field, allowed):
    if field.value is None:
        return None in allowed
    if field.kind == "text":
        return compacted(field.value) in {compacted(value) for value in allowed if value is not None}
    return field.value in allowed


def test_there_are_cases():
    assert len(CASES) >= 10


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_what_is_sure_is_right(path):
    case, document = load(path)
    found = extract(document)
    for name, allowed in case["truth"].items():
        field = found[name]
        assert is_right(field, allowed) or field.confidence < REVIEW_THRESHOLD, (case["why"], field)
        assert verify_in_text(document, field)


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_what_was_found_stays_found(path):
    case, document = load(path)
    found = extract(document)
    assert [name for name in case["found"] if not is_right(found[name], case["truth"][name])] == []


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_what_the_page_leaves_open_is_for_review(path):
    case, document = load(path)
    found = extract(document)
    assert [name for name in case["unsure"] if not found[name].needs_review] == []

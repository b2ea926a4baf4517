"""Finds an invoice's fields in its text, says which places to read again, and takes second readings in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.checks.settlement import bic_fault, iban_fault
from agents.packs.invoice.checks.tariff import LENGTHS, digits
from agents.packs.invoice.extraction import extract
from agents.packs.invoice.extraction.model import REVIEW_THRESHOLD, Extraction, Field
from tools.document.reading import Box, DocumentReading, Page, TextLine

REQUIRED = ("number", "date", "supplier", "currency", "total")
"""Fields every invoice has; one that was not found is for a person."""
REREAD = (*REQUIRED, "due_date", "tax", "net", "iban", "bic")
"""Fields worth reading again when they are unsure."""
MAX_PLACES = 40
UNSURE_LINE = 0.8
"""Line confidence below which a field that was not found is looked for again."""
MAX_UNSURE_LINES = 8
"""Of those, the least sure: where more is unsure the page is the problem, and each costs a device a second."""
SAME_PLACE = 0.5
"""Overlap (intersection over the smaller box) from which two lines are the same line."""


def extract_fields(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Extract every field and name the places whose value fails its validator or is unsure."""
    reading = DocumentReading.from_json(inputs["reading"])
    extraction = extract(reading)
    return {
        "invoice": extraction.to_json(),
        "doubtful": doubtful_places(reading, extraction),
        "confidence_score": _confidence(extraction),
        "sources": _sources(reading, extraction),
    }


def amend_fields(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Put the second readings in place of the first where they are better, and extract again."""
    reading = DocumentReading.from_json(inputs["reading"])
    amended, changed = amend(reading, inputs["readings"])
    extraction = extract(amended)
    return {
        "invoice": extraction.to_json(),
        "changed": changed,
        "confidence_score": _confidence(extraction),
        "sources": _sources(reading, extraction),
    }


def doubtful_places(reading: DocumentReading, extraction: Extraction) -> list[dict[str, Any]]:
    """Where to look again: whole lines around each doubtful value, each place once."""
    places: list[dict[str, Any]] = []
    seen: set[tuple[int, Box]] = set()
    for field, reason in _doubtful(extraction):
        if field.page is None or field.box is None:
            continue
        box = _line_box(reading.pages[field.page - 1], field.box)
        if (field.page, box) not in seen and len(places) < MAX_PLACES:
            seen.add((field.page, box))
            places.append({"field": field.name, "page": field.page, "box": list(box), "reason": reason})
    if missing := [name for name in REQUIRED if extraction[name].value is None]:
        # It may stand in a line that could hardly be read: those are looked at before a person has to.
        reason = f"{', '.join(missing)} not found, and this line could hardly be read"
        unsure = [(page, line) for page in reading.pages for line in page.lines if line.confidence < UNSURE_LINE]
        for page, line in sorted(unsure, key=lambda item: item[1].confidence)[:MAX_UNSURE_LINES]:
            box = _line_box(page, line.box)
            if (page.page, box) not in seen and len(places) < MAX_PLACES:
                seen.add((page.page, box))
                places.append({"field": missing[0], "page": page.page, "box": list(box), "reason": reason})
    return places


def amend(
    reading: DocumentReading, readings: Sequence[Mapping[str, Any]]
) -> tuple[DocumentReading, list[dict[str, Any]]]:
    """The reading with second readings taken in, and what changed.

    A line read again replaces the first one at the same place when it is surer; a first reading that was surer
    stays, so a second look can never make the text worse by its own measure.
    """
    pages = list(reading.pages)
    changed: list[dict[str, Any]] = []
    for item in readings:
        page = pages[item["page"] - 1]
        lines = list(page.lines)
        for again in item["lines"]:
            second = TextLine(text=again["text"], quad=tuple(again["quad"]), confidence=again["confidence"])
            index = _same_line(lines, second.box)
            if index is None or lines[index].confidence >= second.confidence:
                continue
            first, lines[index] = lines[index], second
            if first.text != second.text:
                changed.append(
                    {
                        "page": page.page,
                        "box": list(second.box),
                        "before": first.text,
                        "after": second.text,
                        "confidence_before": first.confidence,
                        "confidence_after": second.confidence,
                    }
                )
        pages[item["page"] - 1] = replace(page, lines=tuple(lines))
    return replace(reading, pages=tuple(pages)), changed


def _doubtful(extraction: Extraction) -> Iterator[tuple[Field, str]]:
    for name in REREAD:
        field = extraction[name]
        if field.value is not None and (fault := _fault(field)) is not None:
            yield field, fault
    for code in extraction.hs_codes:
        if code.value is not None and len(digits(code.value)) not in LENGTHS:
            yield code, f"tariff code {code.value} has {len(digits(code.value))} digits"


def _fault(field: Field) -> str | None:
    value = field.value or ""
    if field.name == "iban" and (fault := iban_fault(value)):
        return fault[1]
    if field.name == "bic" and (fault := bic_fault(value)):
        return fault[1]
    if field.confidence < REVIEW_THRESHOLD:
        return f"confidence {field.confidence:.2f} is below {REVIEW_THRESHOLD}"
    return None


def _line_box(page: Page, box: Box) -> Box:
    """The box of the text lines that `box` lies on: half a line cannot be read well."""
    boxes = [box, *(line.box for line in page.lines if _overlap(line.box, box) > SAME_PLACE)]
    left, top = min(item[0] for item in boxes), min(item[1] for item in boxes)
    right, bottom = max(item[0] + item[2] for item in boxes), max(item[1] + item[3] for item in boxes)
    left, top = max(0, left), max(0, top)
    return left, top, min(right, page.width) - left, min(bottom, page.height) - top


def _same_line(lines: Sequence[TextLine], box: Box) -> int | None:
    """Index of the line at that place, if its width is about the same: half a line is not the line."""
    overlaps = [
        (_overlap(line.box, box), index)
        for index, line in enumerate(lines)
        if 0.75 < box[2] / max(1, line.box[2]) < 1.33
    ]
    best = max(overlaps, default=(0.0, 0))
    return best[1] if best[0] > SAME_PLACE else None


def _overlap(first: Box, second: Box) -> float:
    width = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    height = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    smaller = min(first[2] * first[3], second[2] * second[3])
    return max(0, width) * max(0, height) / smaller if smaller else 0.0


def _confidence(extraction: Extraction) -> float:
    return round(min(extraction[name].confidence for name in REQUIRED), 4)


def _sources(reading: DocumentReading, extraction: Extraction) -> list[dict[str, Any]]:
    places = [
        f"{name}: page {field.page} box {list(field.box)}"
        for name, field in extraction.fields.items()
        if field.box
    ]
    return [
        {
            "id": "D1",
            "kind": "document",
            "label": reading.name,
            "location": "; ".join(places) or "no field found",
            "sha256": reading.sha256,
        }
    ]

"""Finds an invoice's fields in its text, says which places to read again, and takes second readings in."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.checks.settlement import bic_fault, iban_fault
from agents.packs.invoice.checks.tariff import LENGTHS, digits
from agents.packs.invoice.extraction import extract
from agents.packs.invoice.extraction.model import REVIEW_THRESHOLD, Extraction, Field
from podium.errors import InputContractBroken
from tools.document.reading import Box, DocumentReading, Page, ReadingFormatError, TextLine

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
    """Extract every field and name the places whose value fails its validator or is unsure.

    Raises:
        InputContractBroken: the reading contradicts itself, e.g. in the numbers of its pages.
    """
    reading = _reading(inputs)
    extraction = extract(reading)
    return {
        "invoice": extraction.to_json(),
        "doubtful": doubtful_places(reading, extraction),
        "confidence_score": _confidence(extraction),
        "sources": _sources(reading, extraction),
    }


def amend_fields(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Put the second readings in place of the first where they are better, and extract again.

    Raises:
        InputContractBroken: the reading contradicts itself, e.g. in the numbers of its pages.
    """
    reading = _reading(inputs)
    amended, changed = amend(reading, inputs["readings"])
    extraction = extract(amended)
    return {
        "invoice": extraction.to_json(),
        "changed": changed,
        "confidence_score": _confidence(extraction),
        "sources": _sources(reading, extraction),
    }


def _reading(inputs: Mapping[str, Any]) -> DocumentReading:
    try:
        return DocumentReading.from_json(inputs["reading"])
    except ReadingFormatError as error:
        raise InputContractBroken(str(error)) from error


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

    A line read again, whole or in pieces, replaces the first one at the same place when it is surer; a first
    reading that was surer stays, so a second look can never make the text worse by its own measure.

    Raises:
        InputContractBroken: a second reading is of a page that the document does not have.
    """
    pages = list(reading.pages)
    changed: list[dict[str, Any]] = []
    for item in readings:
        if not 1 <= item["page"] <= len(pages):
            raise InputContractBroken(f"page {item['page']} was read again, of {len(pages)}", field="readings")
        page = pages[item["page"] - 1]
        lines = list(page.lines)
        again = [
            TextLine(text=line["text"], quad=tuple(line["quad"]), confidence=line["confidence"])
            for line in item["lines"]
        ]
        # From the last on: pieces put in the place of a line must not move the lines before it.
        for index, pieces in sorted(_by_first_line(lines, again).items(), reverse=True):
            first = lines[index]
            if not _are_the_line(first, pieces) or min(piece.confidence for piece in pieces) <= first.confidence:
                continue
            lines[index : index + 1] = pieces
            if first.text != (after := " ".join(piece.text for piece in pieces)):
                changed.append(
                    {
                        "page": page.page,
                        "box": list(_around([piece.box for piece in pieces])),
                        "before": first.text,
                        "after": after,
                        "confidence_before": first.confidence,
                        "confidence_after": min(piece.confidence for piece in pieces),
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
    around = _around([box, *(line.box for line in page.lines if _overlap(line.box, box) > SAME_PLACE)])
    left, top = max(0, around[0]), max(0, around[1])
    right, bottom = around[0] + around[2], around[1] + around[3]
    return left, top, min(right, page.width) - left, min(bottom, page.height) - top


def _around(boxes: Sequence[Box]) -> Box:
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    return left, top, right - left, bottom - top


def _by_first_line(lines: Sequence[TextLine], again: Sequence[TextLine]) -> dict[int, list[TextLine]]:
    """The second readings by the index of the line they lie on, in the order of the text."""
    found: dict[int, list[TextLine]] = {}
    for second in again:
        overlap, index = max(
            ((_overlap(line.box, second.box), index) for index, line in enumerate(lines)), default=(0.0, 0)
        )
        if overlap > SAME_PLACE:
            found.setdefault(index, []).append(second)
    for index, pieces in found.items():
        x, y = lines[index].quad[:2]
        pieces.sort(key=lambda piece: math.dist((x, y), piece.quad[:2]))
    return found


def _are_the_line(first: TextLine, pieces: Sequence[TextLine]) -> bool:
    """Whether the pieces are the whole line: half of it, or a neighbour cut off at the crop's edge, is not."""
    length, height = _sides(first)
    return 0.75 < sum(_sides(piece)[0] for piece in pieces) / length < 1.33 and all(
        0.5 < _sides(piece)[1] / height < 2 for piece in pieces
    )


def _sides(line: TextLine) -> tuple[float, float]:
    """Length along the text and height across it, whichever way the page lies; at least one pixel."""
    start_top, end_top, start_bottom = line.quad[:2], line.quad[2:4], line.quad[6:]
    return max(1.0, math.dist(start_top, end_top)), max(1.0, math.dist(start_top, start_bottom))


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

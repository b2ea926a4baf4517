"""Reads single places of a document again, larger and differently prepared."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.errors import InvalidRequest, NotFound
from tools.document.reader import ScannedDocument
from tools.document.reading import Box, TextLine
from tools.document.rereading import REREAD_SETTINGS

SURE = 0.95
"""A reading this sure is not tried with further settings: each costs a small device a second."""


def _always() -> bool:
    return True


def reread_places(
    document: ScannedDocument | None, inputs: Mapping[str, Any], *, has_time: Callable[[], bool] = _always
) -> dict[str, Any]:
    """Read every place of `inputs["places"]` with the settings in turn and keep the surest reading of each.

    Args:
        document: the scanned document, or None when it is no longer here.
        inputs: ``{"places": [{"field", "page", "box"}]}``; boxes in pixels of the stored page.
        has_time: asked before each place; once it says no, what was read so far is the answer.

    Returns:
        The output of the agents `page_reread` and `attachment_reread`: ``readings`` with one entry a place.

    Raises:
        NotFound: the document is no longer here.
        InvalidRequest: a place lies outside the document.
    """
    if document is None:
        raise NotFound(
            "the document is no longer here",
            next_step="Scan the document again; the task can then be repeated.",
        )
    readings = []
    for place in inputs["places"]:
        if not has_time():
            break
        readings.append(_reread_place(document, place))
    sources = [
        {
            "id": "D1",
            "kind": "document",
            "label": f"{document.reading.name}, read again",
            "location": ", ".join(f"page {item['page']} box {item['box']}" for item in readings) or "no time left",
            "sha256": document.reading.sha256,
        }
    ]
    sure = [item["confidence"] for item in readings]
    return {"readings": readings, "sources": sources, "confidence_score": min(sure, default=0.0)}


def _reread_place(document: ScannedDocument, place: Mapping[str, Any]) -> dict[str, Any]:
    x, y, width, height = place["box"]
    box: Box = (x, y, width, height)
    best: Sequence[TextLine] = ()
    best_setting = ""
    for name, setting in REREAD_SETTINGS.items():
        try:
            lines = document.reread(place["page"], box, setting)
        except ValueError as error:
            raise InvalidRequest(f"{place['field']}: {error}", field="places") from error
        if _confidence(lines) > _confidence(best):
            best, best_setting = lines, name
        if _confidence(best) >= SURE:
            break
    return {
        "field": place["field"],
        "page": place["page"],
        "box": list(box),
        "setting": best_setting,
        "confidence": round(_confidence(best), 4),
        "lines": [
            {
                "text": line.text,
                "quad": [round(value, 1) for value in line.quad],
                "confidence": round(line.confidence, 4),
            }
            for line in best
        ],
    }


def _confidence(lines: Sequence[TextLine]) -> float:
    return min((line.confidence for line in lines), default=0.0)

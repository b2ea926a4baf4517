"""Golden checks of this pack's agents."""

from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.extraction import Field, verify_in_text
from tools.document.reading import DocumentReading

_KINDS = {
    "date": "date",
    "due_date": "date",
    "total": "amount",
    "tax": "amount",
    "net": "amount",
    "currency": "currency",
}


def values_stand_in_the_text(
    inputs: Mapping[str, Any], output: Mapping[str, Any], context: AgentContext
) -> list[str]:
    """Every extracted value must be found in the OCR text at its box: a value made up is refused."""
    reading = DocumentReading.from_json(inputs["reading"])
    violations = []
    for name, value in output["invoice"]["fields"].items():
        if name == "lines" or value["value"] is None:
            continue
        if not verify_in_text(reading, _field(name, value)):
            place = f"page {value['page']} box {value['box']}"
            violations.append(f"{name} {value['value']!r} is not in the text at {place}")
    return violations


def _field(name: str, value: Mapping[str, Any]) -> Field:
    return Field(
        name=name,
        kind=_KINDS.get(name, "text"),
        value=value["value"],
        confidence=value["confidence"],
        page=value["page"],
        box=tuple(value["box"]) if value["box"] else None,
        source_text=value["source_text"],
    )

"""Golden checks of this pack's agents."""

from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.extraction import verify_value
from tools.document.reading import DocumentReading


def values_stand_in_the_text(
    inputs: Mapping[str, Any], output: Mapping[str, Any], context: AgentContext
) -> list[str]:
    """Every extracted value must be found in the OCR text at its box: a value made up is refused."""
    reading = DocumentReading.from_json(inputs["reading"])
    violations = []
    for name, field in output["invoice"]["fields"].items():
        if name == "lines" or field["value"] is None:
            continue
        if not verify_value(reading, field):
            violations.append(
                f"{name} {field['value']!r} is not in the text at page {field['page']} box {field['box']}"
            )
    return violations

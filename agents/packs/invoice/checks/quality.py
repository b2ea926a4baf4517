"""How well a document could be read, and whether its text tries to give orders."""

from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.checks.embedded_orders import gives_orders
from agents.packs.invoice.checks.outcome import Finding, outcome

UNSURE_LINE = 0.6
MAX_UNSURE_SHARE = 0.2
_INFORMATIVE = frozenset({"page_rotated"})


def check_text_quality(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Could the document be read well enough to rely on?"""
    reading = inputs["reading"]
    findings = [
        Finding(code=item["code"], field="document", message=item["message"], page=item["page"], box=item["box"])
        for item in reading["findings"]
        if item["code"] not in _INFORMATIVE
    ]
    lines = [(page["page"], line) for page in reading["pages"] for line in page["lines"]]
    unsure = sum(line["confidence"] < UNSURE_LINE for _, line in lines)
    if lines and unsure / len(lines) > MAX_UNSURE_SHARE:
        message = f"{unsure} of {len(lines)} lines could hardly be read; scan the document again"
        findings.append(Finding(code="text_unsure", field="document", message=message))
    findings.extend(_orders(lines))
    checked = [f"{len(reading['pages'])} pages, {len(lines)} lines"]
    mean = sum(line["confidence"] for _, line in lines) / len(lines) if lines else 0.0
    return outcome(
        findings, checked, rule="legibility of scanned pages", version="podium 1", confidence=round(mean, 4)
    )


def _orders(lines: list[tuple[int, Mapping[str, Any]]]) -> list[Finding]:
    found = []
    for (page, line), (_, after) in zip(lines, [*lines[1:], (0, {"text": ""})], strict=False):
        # An order may be split over two lines.
        both = f"{line['text']} {after['text']}"
        if gives_orders(line["text"]) or (gives_orders(both) and not gives_orders(after["text"])):
            xs, ys = line["quad"][0::2], line["quad"][1::2]
            box = [int(min(xs)), int(min(ys)), int(max(xs) - min(xs)), int(max(ys) - min(ys))]
            message = f"the text tries to give orders and was not obeyed: {line['text'][:120]!r}"
            found.append(
                Finding(code="embedded_instruction", field="document", message=message, page=page, box=box)
            )
    return found

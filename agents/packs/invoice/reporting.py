"""The risk report of an invoice: what it says, what is wrong with it, what a person should look at."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.extraction.model import REVIEW_THRESHOLD
from agents.packs.invoice.fields import REQUIRED

FIELDS = ("number", "date", "due_date", "supplier", "currency", "total", "tax", "lines")
"""The fields of the answer, in order."""
CHECKS = {
    "quality": "Text quality",
    "trade_terms": "Trade terms",
    "tariff": "Tariff codes",
    "settlement": "Settlement terms",
    "sanctions": "Sanctions screening",
}
HIGH_RISK = frozenset({"sanctions_match", "sanctions_near_match", "iban_check_digits", "embedded_instruction"})
_HELD_BACK = {"check": "the check could not be done"}


def report(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Put fields and findings together; the risk is high, medium or low by the worst finding."""
    invoice, document = inputs["invoice"], inputs["document"]
    findings = [finding for name in CHECKS if inputs[name] is not None for finding in inputs[name]["findings"]]
    fields = {name: _field(invoice["fields"][name]) for name in FIELDS}
    needs_review = list(_needs_review(invoice["fields"], inputs))
    risk = _risk(findings, needs_review)
    answer = {"fields": fields, "findings": findings, "needs_review": needs_review, "risk": risk}
    return {
        "markdown": "\n".join(_markdown(document["name"], answer, inputs)),
        "fields": answer,
        "assumptions": _assumptions(inputs),
        "confidence_score": round(min(fields[name]["confidence"] for name in REQUIRED), 4),
        "sources": list(_sources(document, inputs)),
    }


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {key: field[key] for key in ("value", "confidence", "box", "page")}


def _needs_review(fields: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name in FIELDS:
        field = fields[name]
        if field["value"] is None:
            if name in REQUIRED:
                yield {"field": name, "reason": "not found on the document"}
        elif field["confidence"] < REVIEW_THRESHOLD:
            why = ", ".join(field["reasons"][:3]) or "unsure reading"
            yield {"field": name, "reason": f"confidence {field['confidence']:.2f}: {why}"}
    for name, title in CHECKS.items():
        if inputs[name] is None:
            yield {"field": name, "reason": f"{title}: {_HELD_BACK['check']}"}


def _risk(findings: list[dict[str, Any]], needs_review: list[dict[str, str]]) -> str:
    if any(finding["code"] in HIGH_RISK for finding in findings):
        return "high"
    return "medium" if findings or needs_review else "low"


def _assumptions(inputs: Mapping[str, Any]) -> list[str]:
    return [f"{title}: {_HELD_BACK['check']}" for name, title in CHECKS.items() if inputs[name] is None]


def _markdown(name: str, answer: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Invoice check: {_cell(name)}"
    yield ""
    yield f"Risk: **{answer['risk']}**, {len(answer['findings'])} findings. [Source: D1]"
    yield ""
    yield "## Fields"
    yield ""
    yield "| Field | Value | Confidence | Place | Source |"
    yield "| --- | --- | --- | --- | --- |"
    for field_name, field in answer["fields"].items():
        value = f"{len(field['value'] or [])} rows" if field_name == "lines" else field["value"]
        place = f"page {field['page']}, box {field['box']}" if field["box"] else ""
        shown = "not found" if value is None else _cell(str(value))
        yield f"| {field_name} | {shown} | {field['confidence']:.2f} | {place} | [Source: D1] |"
    yield ""
    yield "## Findings"
    yield ""
    for check, title in CHECKS.items():
        yield from _check_lines(title, inputs[check], f"R{list(CHECKS).index(check) + 1}")
    if answer["needs_review"]:
        yield ""
        yield "## For a person"
        yield ""
        for item in answer["needs_review"]:
            yield f"- {item['field']}: {item['reason']} [Source: D1]"


def _check_lines(title: str, check: Mapping[str, Any] | None, source: str) -> Iterator[str]:
    if check is None:
        yield f"- {title}: not done [Source: D1]"
        return
    if not check["findings"]:
        looked_at = _cell("; ".join(check["checked"])) or "nothing of the kind on the document"
        yield f"- {title}: nothing found ({looked_at}) [Source: {source}]"
    for finding in check["findings"]:
        place = f", page {finding['page']} box {finding['box']}" if finding["box"] else ""
        yield f"- {title}: **{finding['code']}** {_cell(finding['message'])}{place} [Source: {source}]"


def _sources(document: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {
        "id": "D1",
        "kind": "document",
        "label": document["name"],
        "location": f"{len(document['pages'])} pages",
        "sha256": document["sha256"],
    }
    for index, name in enumerate(CHECKS, start=1):
        if inputs[name] is not None:
            yield {**inputs[name]["sources"][0], "id": f"R{index}"}


def _cell(text: str) -> str:
    """Text of a document as it may stand in Markdown: no line ends, no table bars, no markup, no false sources."""
    plain = " ".join(text.split()).replace("|", "/").replace("[", "(").replace("]", ")")
    return plain.replace("<", "‹").replace(">", "›").replace("*", "∗").replace("`", "'")

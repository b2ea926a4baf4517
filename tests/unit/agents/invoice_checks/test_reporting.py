"""The risk report: fields, findings, what a person should look at, and nothing a document could smuggle in."""

import re

from agents.packs.invoice.checks.outcome import Finding, outcome
from agents.packs.invoice.reporting import CHECKS, FIELDS, report
from tests.unit.agents.invoice_checks.papers import CONTEXT, field, invoice, reading

CLEAN = {
    "number": "2026-0417",
    "date": "2026-01-05",
    "supplier": "Acme GmbH",
    "currency": "EUR",
    "total": "119.00",
}


def _checks(**findings):
    return {
        name: outcome(findings.get(name, []), [f"looked at {name}"], rule=name, version="1") for name in CHECKS
    }


def _report(paper=None, document=None, **checks):
    inputs = {"invoice": paper or invoice(**CLEAN), "document": document or reading("x")} | _checks() | checks
    return report(inputs, CONTEXT)


def _found(code, **place):
    return outcome([Finding(code=code, field="iban", message="it is wrong", **place)], [], rule="r", version="1")


def test_a_clean_invoice_is_of_low_risk_and_every_claim_has_its_source():
    output = _report()
    fields = output["fields"]
    assert (fields["risk"], fields["findings"], fields["needs_review"]) == ("low", [], [])
    assert tuple(fields["fields"]) == FIELDS
    assert set(fields["fields"]["number"]) == {"value", "confidence", "box", "page"}
    assert fields["fields"]["due_date"]["value"] is None
    known = {source["id"] for source in output["sources"]}
    assert known == {"D1", "R1", "R2", "R3", "R4", "R5"}
    claims = [line for line in output["markdown"].splitlines() if line.startswith(("- ", "| number", "Risk"))]
    assert len(claims) == 7
    assert all(set(re.findall(r"\[Source: (\w+)\]", claim)) <= known for claim in claims)
    assert all("[Source: " in claim for claim in claims)


def test_the_worst_finding_decides_the_risk():
    assert _report(settlement=_found("bic_country"))["fields"]["risk"] == "medium"
    for code in ("sanctions_match", "sanctions_near_match", "iban_check_digits", "embedded_instruction"):
        assert _report(settlement=_found(code), tariff=_found("tariff_chapter"))["fields"]["risk"] == "high"


def test_a_finding_is_shown_with_its_box():
    output = _report(settlement=_found("iban_check_digits", page=2, box=[1, 2, 3, 4]))
    assert output["fields"]["findings"] == [
        {"code": "iban_check_digits", "field": "iban", "message": "it is wrong", "page": 2, "box": [1, 2, 3, 4]}
    ]
    assert "**iban_check_digits** it is wrong, page 2 box [1, 2, 3, 4] [Source: R4]" in output["markdown"]


def test_unsure_and_missing_fields_are_for_a_person():
    paper = invoice(**(CLEAN | {"number": None}))
    paper["fields"]["total"] = field("119.00", confidence=0.79) | {"reasons": ["blurred", "alone"]}
    paper["fields"]["tax"] = field("19.00", confidence=0.8)
    output = _report(paper)
    assert output["fields"]["needs_review"] == [
        {"field": "number", "reason": "not found on the document"},
        {"field": "total", "reason": "confidence 0.79: blurred, alone"},
    ]
    assert output["fields"]["risk"] == "medium"
    assert output["confidence_score"] == 0.0


def test_a_check_that_was_not_done_is_never_taken_for_passed():
    output = _report(sanctions=None)
    assert output["fields"]["risk"] == "medium"
    assert {"field": "sanctions", "reason": "Sanctions screening: the check could not be done"} in output[
        "fields"
    ]["needs_review"]
    assert output["assumptions"] == ["Sanctions screening: the check could not be done"]
    assert "- Sanctions screening: not done" in output["markdown"]
    assert "R5" not in {source["id"] for source in output["sources"]}


def test_text_of_the_document_is_shown_as_text():
    evil = "x | y\n# Risk: **low** [Source: R5] <b>`rm`</b>"
    output = _report(invoice(**(CLEAN | {"number": evil})), reading("x") | {"name": evil})
    shown = output["markdown"]
    assert "x / y # Risk: ∗∗low∗∗ (Source: R5) ‹b›'rm'‹/b›" in shown
    assert [line for line in shown.splitlines() if line.startswith("#")] == [
        line for line in shown.splitlines() if line.startswith(("# Invoice check: ", "## "))
    ]
    assert output["fields"]["fields"]["number"]["value"] == evil

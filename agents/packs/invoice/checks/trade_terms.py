"""Incoterms 2020 (International Chamber of Commerce, publication 723E): eleven terms, each with a named place."""

import re
from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.checks.outcome import Finding, outcome

INCOTERMS_2020 = frozenset({"EXW", "FCA", "CPT", "CIP", "DAP", "DPU", "DDP", "FAS", "FOB", "CFR", "CIF"})
WITHDRAWN = {
    "DAT": "replaced by DPU in 2020",
    "DAF": "withdrawn in 2010, use DAP",
    "DES": "withdrawn in 2010, use DAP",
    "DEQ": "withdrawn in 2010, use DPU",
    "DDU": "withdrawn in 2010, use DAP",
}

_TERM = re.compile(r"^\W*([A-Za-z]{3})\b(.*)$", re.DOTALL)
_EDITION = re.compile(r"\(?\s*incoterms?\s*®?\s*(\d{4})?\s*\)?", re.IGNORECASE)


def check_trade_terms(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Is the trade term, where there is one, among the eleven, and does it name a place?"""
    field = inputs["invoice"]["fields"]["incoterm"]
    findings: list[Finding] = []
    checked: list[str] = []
    value = field["value"]
    if value is not None:
        checked.append(f"trade term {value}")
        findings.extend(_findings(field, value))
    return outcome(findings, checked, rule="Incoterms 2020", version="ICC 723E")


def _findings(field: Mapping[str, Any], value: str) -> list[Finding]:
    match = _TERM.match(value)
    term = match.group(1).upper() if match else value.strip().upper()
    rest = _EDITION.sub(" ", match.group(2)) if match else ""
    if term in WITHDRAWN:
        message = f"{term} is not an Incoterms 2020 term: {WITHDRAWN[term]}"
        return [Finding.at(field, code="trade_term_withdrawn", name="incoterm", message=message)]
    if term not in INCOTERMS_2020:
        message = f"{term} is not one of the eleven Incoterms 2020 terms"
        return [Finding.at(field, code="trade_term_unknown", name="incoterm", message=message)]
    if not re.search(r"[^\W\d_]{2,}", rest):
        message = f"{term} names no place; Incoterms 2020 terms are only complete with one"
        return [Finding.at(field, code="trade_term_without_place", name="incoterm", message=message)]
    return []

"""Tariff codes of the Harmonized System (World Customs Organization) and the rule for lithium batteries."""

import re
from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext
from agents.packs.invoice.checks.outcome import Finding, outcome

LENGTHS = (6, 8)
"""Subheadings have six digits; national and EU codes (Combined Nomenclature) have eight."""
RESERVED_CHAPTER = 77
LAST_CHAPTER = 97

LITHIUM_CODES = ("850650", "850760")
"""Primary cells and accumulators of lithium."""
BATTERY_HEADINGS = ("8506", "8507")
UN_NUMBERS = ("3090", "3091", "3480", "3481")
"""UN numbers of lithium batteries (UN Model Regulations, ADR 2.2.9.1.7): alone, or in or with equipment."""

_LITHIUM = re.compile(r"lithium|\blitio\b|\bli-?(?:ion|po)\b|\blife-?po4|锂", re.IGNORECASE)
_BATTERY = re.compile(
    r"batter|accumulator|akku|\baccu|\bcell|\bpilas?\b|\bpiles?\b|bater[ií]a|acumulador"
    r"|电池|蓄电",
    re.IGNORECASE,
)
# Equipment with its battery inside is declared as the equipment it is ("drill incl. Li-ion battery", 8467), and a
# charger is no battery.
_OTHER_GOODS = re.compile(
    r"(?:\b(?:with|w/|incl\w*|including|mit|inkl\w*|avec|met|con)\b|[含带内配])"
    r".*(?:batter|akku|\baccu|bater|pil|li-|lith|锂)"
    r"|powered|operated|built-in|betrieben|akku-?(?:bohr|schraub|werkzeug|säge|staub)"
    r"|charger|ladeger|chargeur|\blader|cargador|充电器|grease|fett",
    re.IGNORECASE,
)
_UN_NUMBER = re.compile(
    r"\bUN[\s\-]*(?:n[or°º]\.?|number|num[ée]ro|n[uú]mero|nummer|nr|编号)?[\s.:\-]*(\d{4})(?!\d)", re.IGNORECASE
)


def check_tariff_codes(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Has every tariff code six or eight digits and a valid chapter; are lithium batteries declared as such?"""
    invoice = inputs["invoice"]
    findings: list[Finding] = []
    checked: list[str] = []
    for code in invoice["hs_codes"]:
        if code["value"] is None:
            continue
        checked.append(f"tariff code {code['value']}")
        findings.extend(_code_findings(code))
    findings.extend(_lithium_findings(invoice, _text(inputs["reading"])))
    return outcome(findings, checked, rule="Harmonized System 2022", version="WCO, chapters 1-97")


def digits(code: str) -> str:
    """The digits of a code as printed: ``8507.60 00`` becomes ``85076000``."""
    return re.sub(r"\D", "", code)


def _code_findings(code: Mapping[str, Any]) -> list[Finding]:
    number = digits(code["value"])
    if len(number) not in LENGTHS:
        message = f"tariff code {code['value']} has {len(number)} digits; 6 or 8 are valid"
        return [Finding.at(code, code="tariff_code_length", name="hs_codes", message=message)]
    chapter = int(number[:2])
    if not 1 <= chapter <= LAST_CHAPTER or chapter == RESERVED_CHAPTER:
        message = f"tariff code {code['value']} names chapter {chapter:02d}, which does not exist"
        return [Finding.at(code, code="tariff_chapter", name="hs_codes", message=message)]
    return []


def _lithium_findings(invoice: Mapping[str, Any], text: str) -> list[Finding]:
    codes = [code for code in invoice["hs_codes"] if code["value"] is not None]
    goods = [item for item in invoice["goods"] if item["value"] is not None]
    named = [item for item in goods if _is_lithium_battery(item["value"])]
    coded = [code for code in codes if digits(code["value"]).startswith(LITHIUM_CODES)]
    findings: list[Finding] = []
    if named and codes and not any(digits(code["value"]).startswith(BATTERY_HEADINGS) for code in codes):
        message = "lithium batteries are named, but no tariff code of heading 8506 or 8507 is given"
        findings.append(Finding.at(named[0], code="lithium_code_missing", name="hs_codes", message=message))
    numbers = set(_UN_NUMBER.findall(text))
    if (named or coded) and not numbers & set(UN_NUMBERS):
        place = coded[0] if coded else named[0]
        message = "lithium batteries need their UN number (3090, 3091, 3480 or 3481) on the invoice"
        findings.append(Finding.at(place, code="lithium_un_number_missing", name="hs_codes", message=message))
    return findings


def _is_lithium_battery(goods: str) -> bool:
    return bool(_LITHIUM.search(goods) and _BATTERY.search(goods) and not _OTHER_GOODS.search(goods))


def _text(reading: Mapping[str, Any]) -> str:
    return "\n".join(line["text"] for page in reading["pages"] for line in page["lines"])

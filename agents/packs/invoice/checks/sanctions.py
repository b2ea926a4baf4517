"""Screens the parties of an invoice against a list of names, misspelt ones included."""

import csv
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process
from rapidfuzz.distance import DamerauLevenshtein

from agents.invocation import AgentContext
from agents.packs.invoice.checks.outcome import Finding, outcome
from tools.document.reading import content_hash

LIST_FILE = Path(__file__).parent.parent / "data" / "sanctions.csv"
NEAR = 90.0
"""Similarity in percent from which a name is reported; one wrong letter in twelve is 92."""
PARTIES = ("supplier", "buyer")

_LEGAL_FORMS = re.compile(
    r"\b(?:ltd|limited|llc|inc|corp|corporation|company|gmbh|ag|kg|sa|sas|sarl|bv|nv|plc|pte|oy|ab|srl|spa|holding)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanctionsList:
    """The listed names, folded for comparison, and the hash of the file they came from."""

    names: Mapping[str, str]
    """Folded name or alias to the name as listed."""
    sha256: str


@lru_cache(maxsize=4)
def load_list(path: Path = LIST_FILE) -> SanctionsList:
    """Read the list: columns name and aliases (separated by a bar)."""
    data = path.read_bytes()
    names: dict[str, str] = {}
    for row in csv.DictReader(data.decode("utf-8").splitlines()):
        for spelling in (row["name"], *filter(None, row["aliases"].split("|"))):
            names[fold(spelling)] = row["name"]
    return SanctionsList(names=names, sha256=content_hash(data))


def fold(name: str) -> str:
    """A name without case, accents, punctuation, legal form and spaces that an OCR drops or adds."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = re.sub(r"(?<=\w)\.(?=\w)|\.", "", plain)
    plain = _LEGAL_FORMS.sub(" ", re.sub(r"[^\w]+", " ", plain))
    return " ".join(plain.split())


def screen_parties(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Is a party of the invoice on the list, or close to a name on it?"""
    listed = load_list()
    findings: list[Finding] = []
    checked: list[str] = []
    for party in PARTIES:
        field = inputs["invoice"]["fields"][party]
        if field["value"] is None:
            continue
        checked.append(f"{party} {field['value']}")
        findings.extend(_party_findings(party, field, listed))
    sample = f"{len(listed.names)} names, sha256 {listed.sha256[:12]}"
    return outcome(findings, checked, rule="sanctions sample list", version=sample)


def _party_findings(party: str, field: Mapping[str, Any], listed: SanctionsList) -> list[Finding]:
    name = fold(field["value"])
    if not name:
        return []
    if name in listed.names:
        message = f"{field['value']} is on the sanctions list as {listed.names[name]}"
        return [Finding.at(field, code="sanctions_match", name=party, message=message)]
    near = _nearest(name, listed)
    if near is None:
        return []
    message = f"{field['value']} is nearly {near} on the sanctions list; a person must decide"
    return [Finding.at(field, code="sanctions_near_match", name=party, message=message)]


def _nearest(name: str, listed: SanctionsList) -> str | None:
    spaceless = name.replace(" ", "")
    for other, as_listed in listed.names.items():
        # Letters swapped, dropped or added: at most one in seven, two at most.
        allowed = min(2, max(1, len(other) // 7)) if len(other) >= 5 else 0
        if DamerauLevenshtein.distance(spaceless, other.replace(" ", ""), score_cutoff=allowed) <= allowed:
            return as_listed
    best = process.extractOne(name, listed.names.keys(), scorer=fuzz.token_sort_ratio, score_cutoff=NEAR)
    return listed.names[best[0]] if best is not None else None

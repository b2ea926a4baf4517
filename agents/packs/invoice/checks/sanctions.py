"""Screens the parties of an invoice against a list of names, misspelt ones included."""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein

from agents.invocation import AgentContext
from agents.packs.invoice.checks.outcome import Finding, outcome
from tools.document.reading import content_hash

LIST_FILE = Path(__file__).parent.parent / "data" / "sanctions.csv"
NEAR = 90.0
"""Similarity in percent from which two whole names are compared further."""
NEAR_OWN_WORD = 80.0
"""Similarity in percent that each word only this listed name has must find in the other name.

Without it the words many companies share decide: Nova Commodities Trading is 90 % Kordova Commodities Trading.
"""
PARTIES = ("supplier", "buyer")

# At the end of a name, in any number: "Co., Ltd.", "GmbH & Co. KG", "S. p. A.".
_LEGAL_FORMS = (
    *("limited", "corporation", "company", "gmbh", "kgaa", "ohg", "sarl", "sasu", "srl", "spa", "bv", "nv", "oy"),
    *(
        "ltd",
        "llc",
        "llp",
        "inc",
        "corp",
        "plc",
        "pte",
        "pty",
        "fze",
        "jsc",
        "ltda",
        "ag",
        "kg",
        "sa",
        "sas",
        "se",
    ),
    *("ab", "as", "co", "sl", "und", "and"),
)
_ENDING = re.compile(r"(?: (?:" + "|".join(" ?".join(form) for form in _LEGAL_FORMS) + r"))+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SanctionsList:
    """The listed names, folded for comparison, and the hash of the file they came from."""

    names: Mapping[str, str]
    """Folded name or alias to the name as listed."""
    own_words: Mapping[str, tuple[str, ...]]
    """Folded name or alias to its words that no other listed name has."""
    sha256: str


@lru_cache(maxsize=4)
def load_list(path: Path = LIST_FILE) -> SanctionsList:
    """Read the list: columns name and aliases (separated by a bar)."""
    data = path.read_bytes()
    names: dict[str, str] = {}
    for row in csv.DictReader(data.decode("utf-8").splitlines()):
        for spelling in (row["name"], *filter(None, row["aliases"].split("|"))):
            names[fold(spelling)] = row["name"]
    spread = Counter(word for listed in set(names.values()) for word in set(_words_of(names, listed)))
    own = {name: tuple(word for word in name.split() if spread[word] == 1) for name in names}
    return SanctionsList(names=names, own_words=own, sha256=content_hash(data))


def _words_of(names: Mapping[str, str], listed: str) -> Iterator[str]:
    for folded, name in names.items():
        if name == listed:
            yield from folded.split()


def fold(name: str) -> str:
    """A name without case, accents, punctuation, legal form and spaces that an OCR drops or adds."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = re.sub(r"[\W_]+", " ", plain.replace(".", ""))
    return _ENDING.sub("", " ".join(plain.split()))


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
    return outcome(
        findings,
        checked,
        rule="sanctions sample list",
        version=f"{len(listed.names)} names",
        kind="list",
        sha256=listed.sha256,
    )


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
    for other, as_listed in listed.names.items():
        edits = _edits(name, other)
        # The whole of a listed name may have something around it, e.g. a branch.
        if edits <= 1 or (" " in other and f" {other} " in f" {name} "):
            return as_listed
        near = edits <= 2 or fuzz.token_sort_ratio(name, other) >= NEAR
        if near and all(_has_counterpart(word, name) for word in listed.own_words[other]):
            return as_listed
    return None


def _edits(name: str, other: str) -> int:
    """Letters swapped, dropped, added or exchanged, spaces aside; 9 when more than the name's length allows."""
    spaceless = other.replace(" ", "")
    allowed = min(2, max(1, len(other) // 7)) if len(other) >= 5 else 0
    edits = DamerauLevenshtein.distance(name.replace(" ", ""), spaceless, score_cutoff=allowed)
    return edits if edits <= allowed else 9


def _has_counterpart(word: str, name: str) -> bool:
    return any(fuzz.ratio(word, candidate) >= NEAR_OWN_WORD for candidate in name.split())

"""The words that invoices label their fields with, in six languages and some more.

English, German, French, Dutch, Spanish and Chinese; some Italian, Portuguese and Japanese.

Each kind of label lists phrases by strength: strong ones name the field for certain, weak ones may mean something
else too. Kinds that are no field of ours (other identifiers, amounts paid) are as important: a value that belongs
to one of them belongs to none of ours.
"""

from dataclasses import dataclass

from agents.packs.invoice.extraction.folding import compacted
from agents.packs.invoice.extraction.lexicon_fields import FAIR, FIELD_PHRASES, STRONG, WEAK
from agents.packs.invoice.extraction.lexicon_others import OTHER_PHRASES

__all__ = ["FAIR", "LONGEST", "PHRASES", "STRONG", "WEAK", "Phrase"]

_PRIORITY = (
    "hs",
    "number",
    "title",
    "date",
    "due",
    "other_date",
    "other_id",
    "total",
    "net",
    "tax",
    "rate",
    "other_amount",
    "column",
    "quantity",
    "price",
    "amount",
    "supplier",
    "buyer",
    "currency",
    "terms",
    "incoterm",
)
"""A phrase listed for several kinds means the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """What a label means: its kind and how surely."""

    kind: str
    strength: float


def _build() -> dict[str, Phrase]:
    table: dict[str, Phrase] = {}
    listed = FIELD_PHRASES | OTHER_PHRASES
    for kind, strength in sorted(listed, key=lambda key: (_PRIORITY.index(key[0]), -key[1])):
        for phrase in listed[kind, strength].split("|"):
            table.setdefault(compacted(phrase.strip()), Phrase(kind=kind, strength=strength))
    return table


PHRASES: dict[str, Phrase] = _build()
"""Compact text of a label to its meaning."""

LONGEST = max(len(phrase) for phrase in PHRASES)

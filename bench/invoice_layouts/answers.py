"""What an extractor answered for one page, in the form that is compared with the truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.packs.invoice.extraction.model import Extraction, Field
from bench.invoice_layouts.degrade import Box

FOUR_FIELDS = ("number", "date", "currency", "total")
"""The fields that must be right before anything is booked."""

FIELDS = (*FOUR_FIELDS, "due_date", "supplier", "tax", "iban", "bic", "incoterm", "hs_codes", "lines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One field as answered; `value` is None where nothing was found."""

    value: str | None
    confidence: float
    box: Box | None = None


NOTHING = Answer(value=None, confidence=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All answers for one page. Tariff codes are joined by spaces, the amounts of the lines too."""

    fields: Mapping[str, Answer] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Answer:
        return self.fields.get(name, NOTHING)


def answers_of(extraction: Extraction) -> Answers:
    """The extraction in comparable form."""
    fields = {name: _answer(found) for name, found in extraction.fields.items() if name in FIELDS}
    fields["hs_codes"] = _joined([(code.value, code.confidence) for code in extraction.hs_codes])
    fields["lines"] = _joined([(row.amount.value, row.confidence) for row in extraction.lines])
    return Answers(fields=fields)


def _answer(found: Field) -> Answer:
    return Answer(value=found.value, confidence=found.confidence, box=found.box)


def _joined(parts: Sequence[tuple[str | None, float]]) -> Answer:
    if not parts:
        return NOTHING
    return Answer(
        value=" ".join((value or "-").replace(" ", "") for value, _ in parts),
        confidence=min(confidence for _, confidence in parts),
    )

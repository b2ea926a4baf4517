"""What the extraction hands back: fields with their place, their confidence and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.document.reading import Box

REVIEW_THRESHOLD = 0.8
"""A field below this confidence is for a person to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another value the field may have, ranked behind the chosen one."""

    value: str
    confidence: float
    page: int
    box: Box
    source_text: str

    def to_json(self) -> dict[str, Any]:
        """The alternative as JSON-ready values."""
        return {
            "value": self.value,
            "confidence": round(self.confidence, 3),
            "page": self.page,
            "box": list(self.box),
            "source_text": self.source_text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One value read from the document, or the reason why there is none.

    `kind` says how the value follows from `source_text`: ``text`` (as printed, spaces aside), ``date``
    (``YYYY-MM-DD``), ``amount`` (decimal point, no grouping) or ``currency`` (ISO 4217).
    """

    name: str
    kind: str
    value: str | None
    confidence: float
    page: int | None = None
    box: Box | None = None
    """In pixels of the stored page, like the reading's own boxes."""
    source_text: str = ""
    """The OCR text at `box` that the value was read from; pieces of several lines are split by a newline."""
    alternatives: tuple[Alternative, ...] = ()
    reasons: tuple[str, ...] = ()
    """Short codes, the strongest first: what lifted or sank the confidence."""

    @property
    def needs_review(self) -> bool:
        """True when a person should look at the field before it is used."""
        return self.value is None or self.confidence < REVIEW_THRESHOLD

    @classmethod
    def absent(cls, name: str, kind: str, reason: str) -> "Field":
        """A field that the document does not show, with the reason."""
        return cls(name=name, kind=kind, value=None, confidence=0.0, reasons=(reason,))

    def to_json(self) -> dict[str, Any]:
        """The field as JSON-ready values."""
        return {
            "value": self.value,
            "confidence": round(self.confidence, 3),
            "page": self.page,
            "box": list(self.box) if self.box else None,
            "source_text": self.source_text,
            "alternatives": [alternative.to_json() for alternative in self.alternatives],
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LineItem:
    """One row of the invoice's table of goods or services; each cell is a field that may be absent."""

    description: Field
    quantity: Field
    unit_price: Field
    amount: Field
    confidence: float
    page: int
    box: Box

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready values, cells as plain values."""
        return {
            "description": self.description.value,
            "quantity": self.quantity.value,
            "unit_price": self.unit_price.value,
            "amount": self.amount.value,
            "confidence": round(self.confidence, 3),
            "page": self.page,
            "box": list(self.box),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Every field of one document, found or absent."""

    fields: Mapping[str, Field]
    """By name: number, date, due_date, supplier, buyer, currency, total, tax, net, iban, bic, incoterm and
    payment_terms; a name that the document does not show is there with value None."""
    lines: tuple[LineItem, ...] = ()
    hs_codes: tuple[Field, ...] = ()
    """Tariff codes as printed, malformed ones too."""
    goods: tuple[Field, ...] = ()
    """Descriptions of the goods or services."""
    reasons: tuple[str, ...] = field(default=())
    """Codes that concern the whole document, e.g. ``no_text`` or ``totals_agree``."""

    def __getitem__(self, name: str) -> Field:
        return self.fields[name]

    def lines_field(self) -> dict[str, Any]:
        """The line items as one field; its box surrounds the rows of the first page that has any."""
        rows = [line for line in self.lines if line.page == self.lines[0].page]
        left = min((row.box[0] for row in rows), default=0)
        top = min((row.box[1] for row in rows), default=0)
        right = max((row.box[0] + row.box[2] for row in rows), default=0)
        bottom = max((row.box[1] + row.box[3] for row in rows), default=0)
        return {
            "value": [line.to_json() for line in self.lines] or None,
            "confidence": round(min((line.confidence for line in self.lines), default=0.0), 3),
            "page": rows[0].page if rows else None,
            "box": [left, top, right - left, bottom - top] if rows else None,
            "reasons": [] if rows else ["not_found"],
        }

    def to_json(self) -> dict[str, Any]:
        """The whole extraction as JSON-ready values."""
        return {
            "fields": {name: item.to_json() for name, item in self.fields.items()} | {"lines": self.lines_field()},
            "hs_codes": [code.to_json() for code in self.hs_codes],
            "goods": [item.to_json() for item in self.goods],
            "reasons": list(self.reasons),
        }

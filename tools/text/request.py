"""What normalising a request yields: values that can be stored, shown and planned on.

Every span is a half-open range [start, end) of characters in the cleaned text.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

Origin = Literal["alias", "typo", "date", "number", "percent"]
Language = Literal["zh", "en", "other"]
Granularity = Literal["day", "week", "month", "quarter", "half", "year", "custom"]
Unit = Literal["ratio", "percentage_point", "number", "currency"]
Operator = Literal[">", ">=", "<", "<=", "="]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A half-open interval of days [start, end)."""

    start: date
    end: date
    granularity: Granularity
    label: str
    """What a person calls it: ``2025-Q4``, ``2025-10``, ``2025`` or ``2025-10-01..2025-12-31`` (both days in)."""
    assumed_year: bool = False
    """True if the text named no year and the latest such period that has begun was taken."""
    is_base: bool = False
    """True if the text compares with this period ("against Q3") instead of asking about it."""

    def to_json(self) -> dict[str, Any]:
        """The period as JSON-ready values; dates are ISO 8601."""
        return {
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "granularity": self.granularity,
            "label": self.label,
            "assumed_year": self.assumed_year,
            "is_base": self.is_base,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An exact amount: `value` is a decimal or fraction string; a ratio of 15 % is ``0.15``."""

    value: str
    unit: Unit
    operator: Operator | None = None
    currency: str | None = None
    """ISO 4217 code if the text names one."""

    def to_json(self) -> dict[str, Any]:
        """The quantity as JSON-ready values."""
        return {"value": self.value, "unit": self.unit, "operator": self.operator, "currency": self.currency}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One understood mention.

    `kind` is a kind of the vocabulary (``region``, ``metric`` ...) or one of ``period``, ``threshold``,
    ``percent``, ``percentage_points``, ``number``, ``ranking`` (values: ``top`` or ``bottom``, and the count if
    given), ``grouping`` (a dimension after "by"), ``comparison``, ``direction``, ``comparison_base``,
    ``granularity``, ``scope``.
    """

    kind: str
    values: tuple[str, ...]
    text: str
    """The words of the cleaned text, as they were written."""
    start: int
    end: int
    confidence: float
    origin: Origin
    period: Period | None = None
    quantity: Quantity | None = None

    def to_json(self) -> dict[str, Any]:
        """The entity as JSON-ready values; `period` and `quantity` only where there is one."""
        value: dict[str, Any] = {
            "kind": self.kind,
            "values": list(self.values),
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "confidence": self.confidence,
            "origin": self.origin,
        }
        if self.period is not None:
            value["period"] = self.period.to_json()
        if self.quantity is not None:
            value["quantity"] = self.quantity.to_json()
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """One thing that was changed or assumed, and why.

    `start` and `end` are positions in the cleaned text, or in the original for changes made by cleaning
    (reasons ``unicode_form``, ``control_character``, ``whitespace``).
    """

    reason: Literal["unicode_form", "control_character", "whitespace", "typo", "year_assumed"]
    original: str
    replacement: str
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        """The correction as JSON-ready values."""
        return {
            "reason": self.reason,
            "original": self.original,
            "replacement": self.replacement,
            "start": self.start,
            "end": self.end,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """A mention that carries meaning but was not understood; whoever plans must ask about it.

    `kind` is a guess: place, metric, qualifier, period, question, command, number or unknown.
    """

    kind: str
    text: str
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        """The mention as JSON-ready values."""
        return {"kind": self.kind, "text": self.text, "start": self.start, "end": self.end}


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedRequest:
    """A request as it was sent, as it was cleaned, and as it was understood."""

    original: str
    text: str
    """The cleaned text, still in the user's words; all spans refer to it."""
    corrected: str
    """`text` in lower case with the misspellings replaced."""
    language: Language
    entities: tuple[Entity, ...]
    corrections: tuple[Correction, ...]
    unresolved: tuple[Unresolved, ...]

    def of_kind(self, kind: str) -> tuple[Entity, ...]:
        """The entities of `kind`, in the order of the text."""
        return tuple(entity for entity in self.entities if entity.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """The request as JSON-ready values."""
        return {
            "original": self.original,
            "text": self.text,
            "corrected": self.corrected,
            "language": self.language,
            "entities": [entity.to_json() for entity in self.entities],
            "corrections": [correction.to_json() for correction in self.corrections],
            "unresolved": [mention.to_json() for mention in self.unresolved],
        }

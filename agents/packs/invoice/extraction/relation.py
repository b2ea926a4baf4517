"""How well a value stands to a label: beside it, under it, or after it in the same line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.packs.invoice.extraction.frame import Segment, Sheet, Span, overlap
from agents.packs.invoice.extraction.labels import Label

_LINKING = re.compile(
    r"^(?:\s|[:：.,#*|=>()（）\-]|is|lautet|vom|du|de|del|van|of|le|the|est|es|no|nr|on|am|den|in|eur|usd|gbp|chf|cny|rmb|[$€£¥￥])*$",
    re.IGNORECASE,
)


_BRACKETS = re.compile(r"\([^)]*\)|（[^）]*）|^[^()]*\)|^[^（）]*）")
_ASIDE = frozenset({"currency", "rate", "title", "quantity"})
"""Kinds of labels that may stand between a label and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A label and a value with the strength of their relation in [0, 1]."""

    label: Label
    place: str
    """``same``, ``right``, ``below``, ``left`` or ``above``: where the value is, seen from the label."""
    score: float


class Neighbours:
    """Answers what lies between two spans; built once per document."""

    def __init__(
        self, sheet: Sheet, labels: Sequence[Label], values: Sequence[Span], *, chained: bool = False
    ) -> None:
        """With `chained` a label's row may go on after its own value: ``VAT 21% of 100.00    21.00``."""
        self._sheet = sheet
        self._chained = chained
        self._labels: dict[int, list[Label]] = {}
        for label in labels:
            self._labels.setdefault(label.segment.index, []).append(label)
        self._values: dict[int, list[Span]] = {}
        for value in values:
            self._values.setdefault(value.segment.index, []).append(value)

    def link(self, label: Label, value: Span) -> Link | None:
        """The relation of `value` to `label`, or None when there is none."""
        if label.segment is value.segment:
            return self._within(label, value)
        if not -2.5 < (value.segment.middle - label.segment.middle) / self._sheet.unit < 9:
            return None
        if self._sheet.row_of[label.segment.index] == self._sheet.row_of[value.segment.index] or self._level(
            label, value
        ):
            return self._beside(label, value)
        return self._under(label, value)

    def _level(self, label: Label, value: Span) -> bool:
        return overlap(label.segment.y0, label.segment.y1, value.segment.y0, value.segment.y1) > 0.6

    def _within(self, label: Label, value: Span) -> Link | None:
        text = label.segment.text
        if value.start >= label.span.end:
            gap = _BRACKETS.sub("", text[label.span.end : value.start])
            between = gap.strip(" :：.,-#/") and [
                other
                for other in self._labels.get(label.segment.index, ())
                if label.span.end <= other.span.start < value.start
            ]
            if between:
                return Link(label=label, place="same", score=0.2)
            if _LINKING.match(gap):
                return Link(label=label, place="same", score=1.0)
            words = len(gap.split())
            return Link(label=label, place="same", score=max(0.3, 0.85 - 0.08 * words))
        if value.end <= label.span.start:
            return Link(label=label, place="left", score=0.25)
        return None

    def _own_value(self, label: Label) -> bool:
        """True when the label's own line goes on with a value."""
        return any(value.start >= label.span.end for value in self._values.get(label.segment.index, ()))

    def _beside(self, label: Label, value: Span) -> Link | None:
        unit = self._sheet.unit
        if value.x0 < label.span.x1 - 0.6 * unit:
            return Link(label=label, place="left", score=0.2) if value.x1 < label.span.x0 else None
        if self._followed(label):
            return Link(label=label, place="right", score=0.15)
        distance = (value.x0 - label.span.x1) / unit
        labels = values = 0
        for segment in self._row_between(label.segment, value):
            labels += any(other.kind not in _ASIDE for other in self._labels.get(segment.index, ()))
            values += bool(self._values.get(segment.index))
        labels += any(other.span.end <= value.start for other in self._labels.get(value.segment.index, ()))
        score = 0.95 - 0.004 * distance - 0.35 * labels - 0.12 * values
        return Link(label=label, place="right", score=max(0.05, score))

    def _followed(self, label: Label) -> bool:
        """True when another label follows in the same segment, or the label's value does."""
        others = self._labels.get(label.segment.index, ())
        return (self._own_value(label) and not self._chained) or any(
            other.span.start >= label.span.end and other.kind not in _ASIDE | {label.kind} for other in others
        )

    def _row_between(self, segment: Segment, value: Span) -> list[Segment]:
        row = self._sheet.rows[self._sheet.row_of[segment.index]]
        return [
            other
            for other in row
            if other is not segment
            and other is not value.segment
            and segment.x1 - 1 <= (other.x0 + other.x1) / 2 <= value.x0
        ]

    def _under(self, label: Label, value: Span) -> Link | None:
        unit = self._sheet.unit
        gap = (value.segment.y0 - label.segment.y1) / unit
        across = overlap(label.span.x0, label.span.x1, value.x0, value.x1)
        left, right = abs(value.x0 - label.span.x0) / unit, abs(value.x1 - label.span.x1) / unit
        centre = abs(value.x0 + value.x1 - label.span.x0 - label.span.x1) / 2 / unit
        aligned = min(left, right, centre)
        if across < 0.05 and left > 1.0:
            return None
        if -0.6 <= gap <= 6.0:
            if self._own_value(label):
                return Link(label=label, place="below", score=0.1)
            base = 0.9 if aligned < 0.8 else 0.78 if across > 0.4 else 0.55
            blockers = self._column_between(label, value)
            score = base - 0.07 * max(0.0, gap - 0.6) - 0.3 * blockers - 0.15 * self._right_has_value(label, value)
            return Link(label=label, place="below", score=max(0.03, score))
        above = (label.segment.y0 - value.segment.y1) / unit
        if -0.4 <= above <= 1.5 and aligned < 1.2:
            return Link(label=label, place="above", score=0.3)
        return None

    def _column_between(self, label: Label, value: Span) -> int:
        count = 0
        for other in self._sheet.segments:
            if (
                other is label.segment
                or other is value.segment
                or not label.segment.middle + 1 < other.middle < value.segment.middle - 1
            ):
                continue
            if overlap(other.x0, other.x1, min(label.span.x0, value.x0), max(label.span.x1, value.x1)) > 0.25:
                count += 1
        return count

    def _right_has_value(self, label: Label, value: Span) -> bool:
        """True when the next thing right of the label is a value and no label: then that one is meant."""
        row = self._sheet.rows[self._sheet.row_of[label.segment.index]]
        following = [other for other in row if other.x0 > label.span.x1]
        if not following:
            return False
        nearest = following[0]
        return bool(self._values.get(nearest.index)) and not self._labels.get(nearest.index)

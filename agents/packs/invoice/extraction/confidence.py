"""Confidence of a field from the evidence for it, with the reasons that lowered it.

Each doubt is a factor below one; a field starts from what a clean find is worth. The factors were set by
hand against development invoices (`tests/invoices_dev`); `tests.invoices_dev.measure` shows how they hold.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

CEILING = 0.99


@dataclass(slots=True, kw_only=True)
class Assessment:
    """Collects doubts and support for one value; the only mutable thing here, never leaves its function."""

    value: float = 0.97
    reasons: list[str] = field(default_factory=list)

    def doubt(self, factor: float, reason: str, *, when: bool = True) -> "Assessment":
        """Lower the confidence by `factor` for `reason`."""
        if when and factor < 1.0:
            self.value *= factor
            self.reasons.append(reason)
        return self

    def support(self, share: float, reason: str, *, when: bool = True) -> "Assessment":
        """Close `share` of the gap to certainty for `reason`."""
        if when:
            self.value += (CEILING - self.value) * share
            self.reasons.append(reason)
        return self

    def result(self) -> float:
        """The confidence in [0, 1]."""
        return min(CEILING, max(0.0, self.value))


_CHECKED = ((0.92, 1.0), (0.8, 0.82), (0.5, 0.45), (0.0, 0.2))
_SPELLED = ((0.94, 1.0), (0.9, 0.86), (0.8, 0.7), (0.5, 0.4), (0.0, 0.1))
"""What a line's OCR confidence leaves of a field's. The reader's measure weighs the weakest character: of lines
below 0.9 two in five have a wrong one, of those above one in seventy."""


def ocr_factor(confidences: Iterable[float]) -> float:
    """What the OCR's own confidence leaves of a value whose form the page helps to check (dates, amounts)."""
    return _between(min(confidences, default=1.0), _CHECKED)


def spelling_factor(confidence: float) -> float:
    """The same for text that must be right to the letter and that nothing checks, such as an invoice number."""
    return _between(confidence, _SPELLED)


def _between(value: float, points: tuple[tuple[float, float], ...]) -> float:
    """Straight lines between the points, which run from high to low."""
    for (high, at_high), (low, at_low) in pairwise(points):
        if value >= high:
            return at_high
        if value >= low:
            return at_low + (at_high - at_low) * (value - low) / (high - low)
    return points[-1][1]


def margin_factor(best: float, second: float) -> float:
    """What a close second candidate leaves: nothing is lost from a lead of 0.25 on, 40 % without any lead."""
    lead = max(0.0, best - second)
    return 1.0 if lead >= 0.25 else 0.6 + 1.6 * lead

"""Confidence of a field from the evidence for it, with the reasons that lowered it.

Each doubt is a factor below one; a field starts from what a clean find is worth. The factors were fitted on
development layouts (`tests/invoices_dev`) so that values at or above the review threshold are right.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

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


def ocr_factor(confidences: Iterable[float]) -> float:
    """What the OCR's own confidence leaves of ours: nothing is lost above 0.97, half at 0.75."""
    lowest = min(confidences, default=1.0)
    return 1.0 if lowest >= 0.97 else max(0.3, 1.0 - (0.97 - lowest) * 2.2)


def spelling_factor(confidence: float) -> float:
    """The same for text that must be right to the letter, such as an invoice number.

    Nothing on the page checks it, and below 0.97 one such line in eight had a wrong character.
    """
    return 1.0 if confidence >= 0.972 else max(0.25, 1.0 - (0.972 - confidence) * 12)


def margin_factor(best: float, second: float) -> float:
    """What a close second candidate leaves: nothing is lost from a lead of 0.25 on, 40 % without any lead."""
    lead = max(0.0, best - second)
    return 1.0 if lead >= 0.25 else 0.6 + 1.6 * lead

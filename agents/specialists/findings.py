"""What a reading of a request leaves open: what is missing, and what was assumed."""

from collections.abc import Sequence
from typing import Any

_MAX_LISTED = 50
_MAX_ASSUMPTIONS = 20


class Findings:
    """Collects gaps and assumptions, in the language of the request."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.missing: list[dict[str, Any]] = []
        self.assumptions: list[str] = []

    def lacks(self, what: str, said: str, options: Sequence[str] = ()) -> None:
        """Note that the request cannot be answered before this is settled.

        Args:
            what: words, measure, period, threshold, value, data, choice, share or members.
            said: The words of the request it is about, or ''.
            options: What would do, in words.
        """
        gap = {"what": what, "said": said[:500], "options": [option[:200] for option in options[:100]]}
        if gap not in self.missing and len(self.missing) < _MAX_LISTED:
            self.missing.append(gap)

    def assumes(self, zh: str, en: str) -> None:
        """Note how something the request leaves open was closed."""
        said = zh if self.language == "zh" else en
        if said not in self.assumptions and len(self.assumptions) < _MAX_ASSUMPTIONS:
            self.assumptions.append(said)

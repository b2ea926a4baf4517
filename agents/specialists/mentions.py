"""The mentions of a request by kind, in the order of the text, and which of them nobody has used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.specialists.findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """An order that was asked for, and how many of it."""

    descending: bool
    count: int | None


class Mentions:
    """What normalisation understood; see `tools.text.request.Entity`."""

    def __init__(self, text: str, entities: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.text = text
        self._by_kind = {
            kind: sorted(found, key=lambda entity: entity["start"]) for kind, found in entities.items()
        }

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """The mentions of a kind, in the order of the text."""
        return self._by_kind.get(kind, [])

    def values(self, kind: str) -> tuple[str, ...]:
        """The distinct values of a kind, in the order of the text."""
        return tuple(dict.fromkeys(value for entity in self.of(kind) for value in entity["values"]))

    def text_of(self, kind: str) -> str:
        """The words of the first mention of a kind, or ''."""
        return str(self.of(kind)[0]["text"]) if self.of(kind) else ""

    def one(self, kind: str, findings: Findings) -> str | None:
        """The one value of a kind; several are a choice that is not ours to make."""
        values = self.values(kind)
        if len(values) > 1:
            findings.lacks("choice", "", [str(entity["text"]) for entity in self.of(kind)])
        return values[0] if values else None

    def ranking(self) -> Ranking | None:
        """The order that was asked for."""
        if not (found := self.of("ranking")):
            return None
        direction, *rest = found[0]["values"]
        count = next((int(value) for value in rest if str(value).isdecimal() and int(value) > 0), None)
        return Ranking(descending=direction == "top", count=count)

    def follows_value_of(self, entity: Mapping[str, Any], kind: str) -> bool:
        """Whether a mention is only the head noun of values before or after it: the 区域 of 华东和华南区域."""
        for value in self.of(kind):
            between = self.text[value["end"] : entity["start"]] if value["end"] <= entity["start"] else None
            if between is not None and not between.strip():
                return True
        return False

    def adds_up(self) -> bool:
        """Whether one sum over everything is asked for (合计, combined) and nothing is set side by side."""
        return "together" in self.values("scope") and not self.of("comparison")

    def comparison_words(self) -> str:
        """The words that ask for a comparison, for a question about them."""
        return self.text_of("comparison_base") or self.text_of("comparison") or self.text_of("direction")

    def leave_unexplained(self, findings: Findings) -> None:
        """List numbers that belong to no condition: dropping one could change the answer."""
        for kind in ("number", "percentage_points"):
            for entity in self.of(kind):
                findings.lacks("words", str(entity["text"]))

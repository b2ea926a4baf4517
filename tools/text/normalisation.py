"""Normalise a business request: clean it, find what it means, and keep apart what is not understood."""

from dataclasses import dataclass, replace
from datetime import datetime

from tools.text.chinese_spelling import Edit
from tools.text.cleaning import clean
from tools.text.interpretation import interpret
from tools.text.language import detect_language
from tools.text.lattice import read
from tools.text.request import Correction, Entity, NormalisedRequest, Unresolved
from tools.text.spelling import find_edits
from tools.text.tokens import lower
from tools.text.vocabulary import Vocabulary


def normalise(text: str, *, now: datetime, vocabulary: Vocabulary) -> NormalisedRequest:
    """Understand `text` with the words of `vocabulary` and the clock `now`.

    Pure and deterministic. Relative dates refer to the calendar day of `now` in its own time zone.

    Raises:
        TextInvalid: the text holds a lone surrogate.
        TextTooLong: the text is longer than a request may be.
    """
    cleaned = clean(text)
    lowered = lower(cleaned.text)
    first = read(lowered, vocabulary, now.date())
    edits = find_edits(lowered, first, vocabulary)
    corrected = _Corrected.of(lowered, edits)
    reading = read(corrected.text, vocabulary, now.date()) if edits else first
    found = interpret(corrected.text, reading, vocabulary)
    entities = tuple(corrected.entity(entity, cleaned.text) for entity in found.entities)
    return NormalisedRequest(
        original=text,
        text=cleaned.text,
        corrected=corrected.text,
        language=detect_language(reading),
        entities=entities,
        corrections=(*cleaned.corrections, *_typos(cleaned.text, edits), *_assumptions(entities)),
        unresolved=tuple(corrected.mention(mention, cleaned.text) for mention in found.unresolved),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Corrected:
    """The corrected text, and for each of its characters where it came from."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, text: str, edits: tuple[Edit, ...]) -> "_Corrected":
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for edit in edits:
            kept = range(position, edit.start)
            parts += [text[position : edit.start], edit.replacement]
            starts += [*kept, *([edit.start] * len(edit.replacement))]
            ends += [*(index + 1 for index in kept), *([edit.end] * len(edit.replacement))]
            position = edit.end
        rest = range(position, len(text))
        parts.append(text[position:])
        return cls(
            text="".join(parts),
            starts=(*starts, *rest),
            ends=(*ends, *(index + 1 for index in rest)),
            edits=edits,
        )

    def entity(self, entity: Entity, text: str) -> Entity:
        start, end = self.starts[entity.start], self.ends[entity.end - 1]
        touched = [edit.confidence for edit in self.edits if edit.start < end and start < edit.end]
        found = replace(entity, start=start, end=end, text=text[start:end])
        if not touched:
            return found
        return replace(found, origin="typo", confidence=round(entity.confidence * min(touched), 4))

    def mention(self, mention: Unresolved, text: str) -> Unresolved:
        start, end = self.starts[mention.start], self.ends[mention.end - 1]
        return replace(mention, start=start, end=end, text=text[start:end])


def _typos(text: str, edits: tuple[Edit, ...]) -> tuple[Correction, ...]:
    return tuple(
        Correction(
            reason="typo",
            original=text[edit.word_start : edit.word_end],
            replacement=f"{text[edit.word_start : edit.start]}{edit.replacement}{text[edit.end : edit.word_end]}",
            start=edit.word_start,
            end=edit.word_end,
        )
        for edit in edits
    )


def _assumptions(entities: tuple[Entity, ...]) -> tuple[Correction, ...]:
    return tuple(
        Correction(
            reason="year_assumed",
            original=entity.text,
            replacement=entity.period.label,
            start=entity.start,
            end=entity.end,
        )
        for entity in entities
        if entity.period is not None and entity.period.assumed_year
    )

"""From the caller's words, and the answers to questions about them, to the text part of the normalised request."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from tools.text.normalisation import normalise
from tools.text.request import Entity, NormalisedRequest
from tools.text.vocabulary import Vocabulary

_MEMBER_WORDS = frozenset({"dimension", "grouping"})
"""Kinds that say what the members of an answer are: one gives way to the other."""


class Answer(Protocol):
    """A question that was asked about a request, with its answer."""

    @property
    def answer(self) -> str:
        """What the caller said."""
        ...


class Understanding:
    """Normalises requests with the vocabulary of the packs; callable as the conductor's `TextNormaliser`."""

    def __init__(self, vocabularies: Iterable[Mapping[str, Any]]) -> None:
        """Merge the vocabularies of packs with the base language.

        Raises:
            VocabularyInvalid: one has another form, or they contradict each other.
        """
        self._vocabulary = Vocabulary.from_mapping(*(mapping for mapping in vocabularies if mapping))

    def __call__(self, text: str, as_of: datetime, clarifications: Sequence[Answer]) -> Mapping[str, Any]:
        """`text`, `language`, `entities` by kind, `unresolved` and `corrections`.

        Raises:
            TextInvalid: the text holds a lone surrogate.
            TextTooLong: the text is longer than a request may be.
        """
        understood = normalise(text, now=as_of, vocabulary=self._vocabulary)
        for clarification in clarifications:
            answer = normalise(clarification.answer, now=as_of, vocabulary=self._vocabulary)
            merged = merged_text(understood, answer)
            understood = normalise(merged, now=as_of, vocabulary=self._vocabulary)
        entities: dict[str, list[dict[str, Any]]] = {}
        for entity in understood.entities:
            entities.setdefault(entity.kind, []).append(entity.to_json())
        return {
            "text": understood.text,
            "language": understood.language,
            "entities": entities,
            "unresolved": [mention.to_json() for mention in understood.unresolved],
            "corrections": [correction.to_json() for correction in understood.corrections],
        }


def merged_text(request: NormalisedRequest, answer: NormalisedRequest) -> str:
    """The request with the answer in it.

    An answer that is a question of its own stands alone. Otherwise it takes the place of what was not understood,
    or else of the mentions of the same kinds ("next quarter" gives way to "Q3 2026"), or else it is added.
    """
    if not answer.text:
        return request.text
    if answer.of_kind("metric") and answer.of_kind("period"):
        return answer.text
    if request.unresolved:
        replaced = [(mention.start, mention.end) for mention in request.unresolved]
        return _spliced(request.text, replaced, answer.text)
    kinds = {entity.kind for entity in answer.entities}
    if kinds & _MEMBER_WORDS:
        kinds |= _MEMBER_WORDS
    giving_way = [entity for entity in request.entities if _gives_way(entity, kinds)]
    chosen = [entity for entity in giving_way if any(entity.values == said.values for said in answer.entities)]
    if len(chosen) == len(answer.entities) < len(giving_way):
        # One of several mentions is chosen: it stays where it stands, the others go.
        unwanted = [(entity.start, entity.end) for entity in giving_way if entity not in chosen]
        return _spliced(request.text, unwanted, "")
    replaced = [(entity.start, entity.end) for entity in giving_way]
    if replaced:
        return _spliced(request.text, replaced, answer.text)
    return f"{request.text}{'，' if request.language == 'zh' else ', '}{answer.text}"


def _gives_way(entity: Entity, kinds: set[str]) -> bool:
    if entity.kind == "period" and entity.period is not None and entity.period.is_base:
        return False
    return entity.kind in kinds


def _spliced(text: str, replaced: Sequence[tuple[int, int]], answer: str) -> str:
    """The text with the answer at the first of the spans and nothing at the others."""
    parts: list[str] = []
    position = 0
    for number, (start, end) in enumerate(sorted(set(replaced))):
        parts += [text[position:start], answer if number == 0 else ""]
        position = max(position, end)
    return "".join([*parts, text[position:]])

"""The words a request may use and what they mean, merged from the base language and the packs.

A vocabulary is a mapping (YAML on disk)::

    kinds:
      region:                         # any name; `dimension` names what results can be grouped by
        place: true                   # its values are places: one character may be misspelt next to a slot word
        values:
          east_china: [华东, East China]
      metric:
        values:
          sales: [销售额, 营收, sales, revenue]
    groups:                           # aliases that stand for several values
      - {kind: city, values: [beijing, shanghai], aliases: [京沪]}
    stop_words: [亲]                  # words that carry no condition, beyond the built-in list
    confusions: {额: 俄厄}            # characters that are mistyped for one another, beyond the built-in list
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from tools.text.errors import VocabularyInvalid
from tools.text.homophones import sound_alike
from tools.text.tokens import alias_key
from tools.text.wordlists import base_language, ordinary_words, unknown_places, unknown_terms

Role = Literal["alias", "ordinary", "unknown"]

_SHORTEST_INFLECTED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a known word stands for: a value of a kind, nothing at all, or something known to be unsupported."""

    role: Role
    kind: str = ""
    values: tuple[str, ...] = ()
    alias: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Vocabulary:
    """Known words by their tokens; build it with `from_mapping`.

    Two vocabularies are equal only if they are the same object, so that derived tables can be cached by it.
    """

    meanings: Mapping[tuple[str, ...], tuple[Meaning, ...]]
    place_kinds: frozenset[str]
    confusions: Mapping[str, frozenset[str]] = field(repr=False)

    @classmethod
    def from_mapping(cls, *mappings: Mapping[str, Any]) -> "Vocabulary":
        """The base language merged with `mappings`, e.g. the parsed YAML of each pack.

        Raises:
            VocabularyInvalid: a mapping has another form, or an alias has two meanings within one kind.
        """
        builder = _Builder()
        for mapping in (base_language(), *mappings):
            builder.add(mapping)
        return builder.build()

    def lookup(self, key: tuple[str, ...]) -> tuple[Meaning, ...]:
        """The meanings of a sequence of words; an English plural is found by its singular and the reverse."""
        found = self.meanings.get(key, ())
        if found and found[0].role != "unknown":
            return found
        others = (self.meanings.get((*key[:-1], form), ()) for form in _other_numbers(key[-1]))
        usable = (meanings for meanings in others if meanings and (not found or meanings[0].role == "alias"))
        return next(usable, found)

    def confusable(self, typed: str, meant: str) -> bool:
        """Whether one Chinese character is easily mistyped for the other: it sounds alike, or is listed."""
        return (
            sound_alike(typed, meant)
            or typed in self.confusions.get(meant, ())
            or meant in self.confusions.get(typed, ())
        )

    @cached_property
    def longest_alias(self) -> int:
        """Tokens of the longest alias."""
        return max(map(len, self.meanings))

    @cached_property
    def alias_words(self) -> frozenset[str]:
        """Latin words that occur in an alias of a value."""
        return frozenset(
            word
            for key, meanings in self.meanings.items()
            if any(meaning.role == "alias" for meaning in meanings)
            for word in key
            if word.isascii() and word.isalpha()
        )

    @cached_property
    def known_words(self) -> frozenset[str]:
        """Every single Latin word that has a meaning by itself or within an alias."""
        return self.alias_words | {key[0] for key in self.meanings if len(key) == 1}

    @cached_property
    def unknown_words(self) -> frozenset[str]:
        """Single Latin words that are known to mean something nobody supports."""
        return frozenset(
            key[0] for key, meanings in self.meanings.items() if len(key) == 1 and meanings[0].role == "unknown"
        )

    @cached_property
    def word_pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbouring Latin words of aliases, e.g. ``("east", "china")``."""
        return frozenset(
            pair
            for key, meanings in self.meanings.items()
            if any(meaning.role == "alias" for meaning in meanings)
            for pair in pairwise(key)
        )

    @cached_property
    def chinese_aliases(self) -> tuple[tuple[str, Meaning], ...]:
        """All-Chinese aliases of values, longest first: what a mistyped character may have been meant for."""
        found = [
            ("".join(key), meaning)
            for key, meanings in self.meanings.items()
            if len(key) > 1 and not any(part.isascii() for part in key)
            for meaning in meanings
            if meaning.role == "alias"
        ]
        return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair[0])))


def _other_numbers(word: str) -> tuple[str, ...]:
    """The singular of an English plural, or the plural of a singular, as far as spelling tells."""
    if len(word) < _SHORTEST_INFLECTED or not word.isascii() or not word.isalpha():
        return ()
    if word.endswith("ies"):
        return word[:-3] + "y", word[:-1]
    if word.endswith("es"):
        return word[:-1], word[:-2]
    return (word[:-1],) if word.endswith("s") else (word + "s",)


class _Builder:
    """Collects meanings and refuses contradictions."""

    def __init__(self) -> None:
        self._meanings: dict[tuple[str, ...], list[Meaning]] = {}
        self._confusions: dict[str, set[str]] = {}
        self._place_kinds: set[str] = set()

    def add(self, mapping: Mapping[str, Any]) -> None:
        for kind, entry in _entries(mapping.get("kinds", {}), "kinds"):
            if entry.get("place", False):
                self._place_kinds.add(kind)
            for value, aliases in _entries(entry.get("values", {}), f"kinds.{kind}.values", leaf=list):
                for alias in aliases:
                    self._alias(kind, (value,), alias)
        for group in mapping.get("groups", ()):
            try:
                kind, values, aliases = str(group["kind"]), tuple(map(str, group["values"])), group["aliases"]
            except (KeyError, TypeError) as error:
                raise VocabularyInvalid(f"a group needs kind, values and aliases: {group!r}") from error
            for alias in aliases:
                self._alias(kind, values, alias)
        for word in mapping.get("stop_words", ()):
            self._put(word, Meaning(role="ordinary"))
        for char, others in _entries(mapping.get("confusions", {}), "confusions", leaf=str):
            self._confusions.setdefault(char, set()).update(others)

    def build(self) -> Vocabulary:
        for word in ordinary_words():
            self._weaker(word, Meaning(role="ordinary"))
        for kind, term in unknown_terms():
            self._weaker(term, Meaning(role="unknown", kind=kind))
        for place in unknown_places():
            self._weaker(place, Meaning(role="unknown", kind="place"))
        return Vocabulary(
            meanings={key: tuple(meanings) for key, meanings in self._meanings.items()},
            place_kinds=frozenset(self._place_kinds),
            confusions={char: frozenset(others) for char, others in self._confusions.items()},
        )

    def _alias(self, kind: str, values: tuple[str, ...], alias: Any) -> None:
        key = alias_key(str(alias))
        for known in self._meanings.get(key, ()):
            if known.role == "alias" and known.kind == kind:
                if known.values == values:
                    return
                raise VocabularyInvalid(f"{alias!r} is an alias of both {known.values} and {values} in {kind}")
        self._put(str(alias), Meaning(role="alias", kind=kind, values=values, alias=str(alias)))

    def _put(self, word: Any, meaning: Meaning) -> None:
        key = alias_key(str(word))
        if not key:
            raise VocabularyInvalid(f"{word!r} has no letters, digits or characters to be found by")
        self._meanings.setdefault(key, []).append(meaning)

    def _weaker(self, word: str, meaning: Meaning) -> None:
        """Built-in words give way to what the packs say."""
        if alias_key(word) not in self._meanings:
            self._put(word, meaning)


def _entries(value: Any, where: str, leaf: type = dict) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise VocabularyInvalid(f"{where} must be a mapping")
    for key, item in value.items():
        if not isinstance(item, leaf) and not (leaf is list and _is_listing(item)):
            raise VocabularyInvalid(f"{where}.{key} must be a {leaf.__name__}")
        yield str(key), item


def _is_listing(item: Any) -> bool:
    return isinstance(item, Iterable) and not isinstance(item, str | Mapping)

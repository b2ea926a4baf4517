"""Correct Chinese words with one character mistyped for a listed sound-alike or look-alike, or two swapped.

Only characters that no known word explains may be changed, and a word of two characters only where the context
speaks for it: 华冻 is 华东 before 区域 or beside 华南, and stays unknown elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tools.text.lattice import Reading
from tools.text.vocabulary import Meaning, Vocabulary

_DATE_PHRASES = (
    *("上季度", "上个季度", "本季度", "这个季度", "上上季度", "第一季度", "第二季度", "第三季度"),
    *("第四季度", "上个月", "这个月", "上半年", "下半年", "去年同期", "百分之", "百分点", "个百分点"),
)
_BASE_KINDS = frozenset({"comparison", "direction", "comparison_base"})
_SLOT_WORDS = ("区域", "地区", "大区", "片区", "区", "省", "市", "分公司", "一带")
_LIST_JOINERS = ("和", "与", "跟", "及", "、", ",", "以及", "/", "对")
_SHORT = 2
"""Chinese words of two characters are corrected only where the context speaks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace [start, end) of the text by `replacement`; `confidence` is how sure the correction is."""

    start: int
    end: int
    replacement: str
    confidence: float
    word_start: int
    """The word that was misspelt is [word_start, word_end): what a person wants to be shown."""
    word_end: int


def find_chinese_edits(text: str, reading: Reading, vocabulary: Vocabulary) -> Iterator[Edit]:
    """Corrections of Chinese words in the unmatched parts of `reading`; they may overlap."""
    loose = _loose_positions(reading)
    found: dict[tuple[int, int], set[str]] = {}
    slots = _PlaceSlots(text, reading, vocabulary) if any(loose.values()) else None
    for start, alias, meaning in _slips(text, loose, vocabulary):
        end = start + len(alias)
        if len(alias) > _SHORT or meaning.kind in _BASE_KINDS or (slots and slots.holds(start, end, meaning.kind)):
            found.setdefault((start, end), set()).add(alias)
    for (start, end), aliases in sorted(found.items(), key=lambda item: (item[0][0] - item[0][1], item[0])):
        if len(aliases) == 1:
            meant = next(iter(aliases))
            wrong = [index for index in range(end - start) if text[start + index] != meant[index]]
            yield Edit(
                start=start + wrong[0],
                end=start + wrong[-1] + 1,
                replacement=meant[wrong[0] : wrong[-1] + 1],
                confidence=0.85,
                word_start=start,
                word_end=end,
            )


def _loose_positions(reading: Reading) -> dict[int, bool]:
    """Characters that may be mistyped: True where unmatched, False where a known word of one character."""
    return {
        piece.start: piece.kind == "unmatched"
        for piece in reading.pieces
        if piece.end - piece.start == 1 and reading.tokens[piece.first].kind == "han" and piece.kind != "quantity"
    }


def _slips(text: str, loose: dict[int, bool], vocabulary: Vocabulary) -> Iterator[tuple[int, str, Meaning]]:
    """Places where the text is an alias but for one confusable character or two swapped neighbours."""
    patterns = _patterns(vocabulary)
    longest = max(map(len, patterns))
    near = {position - back for position, unmatched in loose.items() if unmatched for back in range(longest)}
    for start in sorted(near):
        for length in range(_SHORT, longest + 1):
            window = text[start : start + length] if start >= 0 else ""
            if len(window) == length and any(loose.get(start + index, False) for index in range(length)):
                for index in (index for index in range(length) if start + index in loose):
                    for alias, meaning in patterns.get(f"{window[:index]}*{window[index + 1 :]}", ()):
                        if vocabulary.confusable(window[index], alias[index]):
                            yield start, alias, meaning
                    if start + index + 1 in loose:
                        for alias, meaning in _swapped(window, index, patterns):
                            yield start, alias, meaning


def _swapped(
    window: str, index: int, patterns: dict[str, tuple[tuple[str, Meaning], ...]]
) -> tuple[tuple[str, Meaning], ...]:
    """The aliases that `window` is with two neighbours swapped; two characters are too few to tell."""
    meant = f"{window[:index]}{window[index : index + 2][::-1]}{window[index + 2 :]}"
    return patterns.get(meant, ()) if len(window) > _SHORT and meant != window else ()


@lru_cache(maxsize=8)
def _patterns(vocabulary: Vocabulary) -> dict[str, tuple[tuple[str, Meaning], ...]]:
    """Every Chinese alias and date phrase by itself and with each of its characters left open (华*)."""
    found: dict[str, list[tuple[str, Meaning]]] = {}
    phrases = ((phrase, Meaning(role="alias", kind="period")) for phrase in _DATE_PHRASES)
    for alias, meaning in (*phrases, *vocabulary.chinese_aliases):
        for key in (alias, *(f"{alias[:index]}*{alias[index + 1 :]}" for index in range(len(alias)))):
            found.setdefault(key, []).append((alias, meaning))
    return {key: tuple(aliases) for key, aliases in found.items()}


class _PlaceSlots:
    """Where a place is expected: before 区域 and the like, or listed beside a known place of the same kind."""

    def __init__(self, text: str, reading: Reading, vocabulary: Vocabulary) -> None:
        self._text = text
        self._kinds = vocabulary.place_kinds
        known = [(piece, meaning.kind) for piece in reading.pieces for meaning in piece.meanings]
        self._starts = {(piece.start, kind) for piece, kind in known}
        self._ends = {(piece.end, kind) for piece, kind in known}

    def holds(self, start: int, end: int, kind: str) -> bool:
        """Whether [start, end) stands where a place of `kind` is expected."""
        if kind not in self._kinds:
            return False
        return self._text.startswith(_SLOT_WORDS, end) or any(
            (self._text.startswith(joiner, end) and (end + len(joiner), kind) in self._starts)
            or (self._text.endswith(joiner, 0, start) and (start - len(joiner), kind) in self._ends)
            for joiner in _LIST_JOINERS
        )

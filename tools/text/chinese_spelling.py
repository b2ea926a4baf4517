"""Correct Chinese words with one character mistyped for a listed sound-alike or look-alike, or two swapped.

Only characters that no known word explains may be changed, and a word of two characters only where the context
speaks for it: 华冻 is 华东 before 区域 or beside 华南, and stays unknown elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tools.text.lattice import Reading
from tools.text.vocabulary import Meaning, Vocabulary

_DATE_PHRASES = (
    *("上季度", "上个季度", "本季度", "这个季度", "上上季度", "第一季度", "第二季度", "第三季度"),
    *("第四季度", "上个月", "这个月", "上半年", "下半年", "去年同期", "百分之", "百分点", "个百分点"),
)
_THRESHOLD_WORDS = (
    "超过",
    "超出",
    "大于",
    "高于",
    "多于",
    "不低于",
    "不少于",
    "至少",
    "达到",
    "低于",
    "小于",
    "少于",
)
"""Corrected only right before an amount."""
_THRESHOLD = "threshold"
_OVER, _AND = "超", "和"
_AMOUNT_NEXT = re.compile(r" ?(?:\d|百分之|[一二三四五六七八九]成)")
_MEMBER_BEFORE = ("的", "个", "座", "些", "各", "每")
"""What stands before the word for the members of an answer: 下降超15%的城市, 哪些城市."""
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
    slips = list(_slips(text, loose, vocabulary))
    slots = _PlaceSlots(text, reading, vocabulary) if slips else None
    for start, alias, meaning in slips:
        if _needs_no_place(text, start, alias, meaning):
            found.setdefault((start, start + len(alias)), set()).add(alias)
    while slots is not None and (placed := [slip for slip in slips if slots.takes(*slip)]):
        # A place that was found may be what the next one stands beside: 画东和华男区域.
        for start, alias, meaning in placed:
            found.setdefault((start, start + len(alias)), set()).add(alias)
            slots.add(start, start + len(alias), meaning.kind)
    for start, meant in _single_slips(text, loose, reading, vocabulary):
        found.setdefault((start, start + 1), set()).add(meant)
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


def _needs_no_place(text: str, start: int, alias: str, meaning: Meaning) -> bool:
    """Whether an alias may have been meant at `start`, without a place being expected there."""
    if meaning.kind == _THRESHOLD:
        return _AMOUNT_NEXT.match(text, start + len(alias)) is not None
    if meaning.kind == "dimension" and len(alias) == _SHORT:
        return text.endswith(_MEMBER_BEFORE, 0, start)
    return len(alias) > _SHORT or meaning.kind in _BASE_KINDS


def _single_slips(
    text: str, loose: dict[int, bool], reading: Reading, vocabulary: Vocabulary
) -> Iterator[tuple[int, str]]:
    """超 between a direction and an amount (下降朝15%), 和 between two places of one kind (华东何华南)."""
    known = [(piece, meaning.kind) for piece in reading.pieces for meaning in piece.meanings]
    ends, starts = {(piece.end, kind) for piece, kind in known}, {(piece.start, kind) for piece, kind in known}
    for start, unmatched in loose.items():
        if not unmatched:
            continue
        if (start, "direction") in ends and _AMOUNT_NEXT.match(text, start + 1):
            meant = _OVER
        elif any((start, kind) in ends and (start + 1, kind) in starts for kind in vocabulary.place_kinds):
            meant = _AND
        else:
            continue
        if vocabulary.confusable(text[start], meant):
            yield start, meant


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
    periods = ((phrase, Meaning(role="alias", kind="period")) for phrase in _DATE_PHRASES)
    thresholds = ((word, Meaning(role="alias", kind=_THRESHOLD)) for word in _THRESHOLD_WORDS)
    for alias, meaning in (*periods, *thresholds, *vocabulary.chinese_aliases):
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
        self._added: set[tuple[int, int, str]] = set()

    def add(self, start: int, end: int, kind: str) -> None:
        """Take [start, end) for a place of `kind` from now on."""
        self._added.add((start, end, kind))
        self._starts.add((start, kind))
        self._ends.add((end, kind))

    def takes(self, start: int, alias: str, meaning: Meaning) -> bool:
        """Whether the alias may stand at `start`, where a place of its kind is expected and none was added yet."""
        end, kind = start + len(alias), meaning.kind
        if kind not in self._kinds or (start, end, kind) in self._added:
            return False
        return self._text.startswith(_SLOT_WORDS, end) or any(
            (self._text.startswith(joiner, end) and (end + len(joiner), kind) in self._starts)
            or (self._text.endswith(joiner, 0, start) and (start - len(joiner), kind) in self._ends)
            for joiner in _LIST_JOINERS
        )

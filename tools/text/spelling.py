"""Correct misspelt known words, conservatively: an unknown word is better asked about than turned into another.

A Latin word is compared with the words of aliases, dates and longer ordinary words by Damerau-Levenshtein
distance. The first letter must agree or be swapped with the second, short words may only have letters swapped, lost or
doubled, and a tie corrects nothing. A Chinese word may have one character mistyped for a listed sound-alike or look-alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz.distance import DamerauLevenshtein

from tools.text.lattice import Piece, Reading
from tools.text.tokens import Token
from tools.text.vocabulary import Meaning, Vocabulary

_DATE_WORDS = frozenset(
    [
        *("day", "days", "week", "weeks", "month", "months", "quarter", "quarters", "year", "years", "half"),
        *("last", "previous", "prior", "past", "this", "current", "today", "yesterday", "since"),
        *("first", "second", "third", "fourth", "january", "february", "march", "april", "june", "july", "august"),
        *("september", "october", "november", "december", "percent", "percentage", "points", "point"),
        *("more", "than", "over", "least", "most", "between", "exceeding", "exceeded", "million", "billion"),
        *("thousand", "highest", "lowest", "largest", "bottom"),
    ]
)
_DATE_PHRASES = (
    *("上季度", "上个季度", "本季度", "这个季度", "上上季度", "第一季度", "第二季度", "第三季度"),
    *("第四季度", "上个月", "这个月", "上半年", "下半年", "去年同期", "百分之", "百分点", "个百分点"),
)
_SHORTEST_WORD = 4
_SHORTEST_SUBSTITUTED = 6
_SHORTEST_TWO_EDITS = 9
_SHORTEST_ORDINARY = 6
_SHORTEST_HALF = 4
_BASE_KINDS = frozenset({"comparison", "direction", "comparison_base"})
_SLOT_WORDS = ("区域", "地区", "大区", "片区", "区", "省", "市", "分公司", "一带")
_LIST_JOINERS = ("和", "与", "跟", "及", "、", ",", "以及", "/", "对")


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


def find_edits(text: str, reading: Reading, vocabulary: Vocabulary) -> tuple[Edit, ...]:
    """Corrections for the unmatched parts of `reading`, in order and without overlap."""
    edits = sorted(
        (*_latin(reading, vocabulary), *_chinese(text, reading, vocabulary)), key=lambda edit: edit.start
    )
    chosen: list[Edit] = []
    for edit in edits:
        if not chosen or edit.start >= chosen[-1].end:
            chosen.append(edit)
    return tuple(chosen)


def _latin(reading: Reading, vocabulary: Vocabulary) -> Iterator[Edit]:
    known = vocabulary.known_words | _DATE_WORDS
    for piece in reading.pieces:
        token = reading.tokens[piece.first]
        if (
            piece.kind != "unmatched"
            or token.kind != "latin"
            or len(token.text) < _SHORTEST_WORD
            or token.text in known
        ):
            continue
        halves = _split(token.text, vocabulary.alias_words | _DATE_WORDS)
        if halves:
            yield _whole(token, halves, 0.9)
            continue
        found = _nearest(token.text, _neighbours(reading, piece), vocabulary)
        if found is not None:
            word, distance = found
            yield _whole(token, word, 0.9 if distance == 1 else 0.75)


def _whole(token: Token, replacement: str, confidence: float) -> Edit:
    return Edit(
        start=token.start,
        end=token.end,
        replacement=replacement,
        confidence=confidence,
        word_start=token.start,
        word_end=token.end,
    )


def _split(word: str, known: frozenset[str]) -> str | None:
    """Part two known words that were run together: "eastchina"."""
    for cut in range(_SHORTEST_HALF, len(word) - _SHORTEST_HALF + 1):
        if word[:cut] in known and word[cut:] in known:
            return f"{word[:cut]} {word[cut:]}"
    return None


def _neighbours(reading: Reading, piece: Piece) -> tuple[str, str]:
    before = reading.tokens[piece.first - 1].text if piece.first else ""
    after = reading.tokens[piece.last].text if piece.last < len(reading.tokens) else ""
    return before, after


def _nearest(word: str, neighbours: tuple[str, str], vocabulary: Vocabulary) -> tuple[str, int] | None:
    """The one known word that `word` is a misspelling of; None if there is none or more than one."""
    targets = vocabulary.alias_words | _DATE_WORDS
    ordinary = {other for other in vocabulary.known_words - targets if len(other) >= _SHORTEST_ORDINARY}
    best: list[tuple[int, str]] = []
    for target in targets | ordinary:
        completes = (neighbours[0], target) in vocabulary.word_pairs or (
            target,
            neighbours[1],
        ) in vocabulary.word_pairs
        distance = _distance(word, target, completes_a_name=completes)
        if distance is not None:
            best.append((distance - completes, target))
    best.sort()
    if not best or (len(best) > 1 and best[0][0] == best[1][0] and not _same_stem(best[0][1], best[1][1])):
        return None
    target = best[0][1]
    return target, DamerauLevenshtein.distance(word, target)


def _same_stem(one: str, other: str) -> bool:
    """Inflections of one word ("sale", "sales") are no ambiguity."""
    return one[:-1] == other or other[:-1] == one or (one[:-1] == other[:-1] and len(one) > _SHORTEST_SUBSTITUTED)


def _distance(word: str, target: str, *, completes_a_name: bool) -> int | None:
    """Edits between two words, None if they are more than a slip of the keyboard apart."""
    if len(target) < _SHORTEST_WORD or abs(len(word) - len(target)) > 2:
        return None
    swapped_start = word[:2] == target[1::-1]
    if word[0] != target[0] and not swapped_start:
        return None
    allowed = 2 if len(target) >= _SHORTEST_TWO_EDITS else 1
    anagram = len(word) >= _SHORTEST_SUBSTITUTED and sorted(word) == sorted(target)
    distance = DamerauLevenshtein.distance(word, target, score_cutoff=2)
    if distance > (2 if anagram else allowed):
        return None
    substituted = len(word) == len(target) and sorted(word) != sorted(target)
    if substituted and len(target) < _SHORTEST_SUBSTITUTED and not completes_a_name:
        return None
    return int(distance)


def _chinese(text: str, reading: Reading, vocabulary: Vocabulary) -> Iterator[Edit]:
    loose = _loose_positions(text, reading)
    if not loose:
        return
    phrases = [(phrase, Meaning(role="alias", kind="period")) for phrase in _DATE_PHRASES]
    found: dict[tuple[int, int], set[str]] = {}
    for alias, meaning in (*phrases, *vocabulary.chinese_aliases):
        for start in range(len(text) - len(alias) + 1):
            end = start + len(alias)
            if _is_slip(text[start:end], alias, start, loose, vocabulary) and (
                len(alias) > 2 or _may_be_short(text, start, end, meaning, reading, vocabulary)
            ):
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


def _loose_positions(text: str, reading: Reading) -> dict[int, bool]:
    """Characters that may be mistyped: True where unmatched, False where a one-character ordinary word."""
    loose: dict[int, bool] = {}
    for piece in reading.pieces:
        token: Token = reading.tokens[piece.first]
        if (
            token.kind == "han"
            and piece.end - piece.start == 1
            and piece.kind in ("unmatched", "ordinary", "unknown", "alias")
        ):
            loose[piece.start] = piece.kind == "unmatched"
    return loose if any(loose.values()) else {}


def _is_slip(window: str, alias: str, start: int, loose: dict[int, bool], vocabulary: Vocabulary) -> bool:
    differing = [index for index, (typed, meant) in enumerate(zip(window, alias, strict=True)) if typed != meant]
    if not any(loose.get(start + index, False) for index in range(len(alias))):
        return False
    if len(differing) == 1:
        index = differing[0]
        return start + index in loose and vocabulary.confusable(window[index], alias[index])
    swapped = len(differing) == 2 and len(alias) > 2 and differing[1] == differing[0] + 1
    return (
        swapped
        and window[differing[0]] == alias[differing[1]]
        and window[differing[1]] == alias[differing[0]]
        and all(start + index in loose for index in differing)
    )


def _may_be_short(
    text: str, start: int, end: int, meaning: Meaning, reading: Reading, vocabulary: Vocabulary
) -> bool:
    """Two characters are little evidence: a place needs a slot word or a listed neighbour."""
    if meaning.kind in _BASE_KINDS:
        return True
    if meaning.kind not in vocabulary.place_kinds:
        return False
    if text.startswith(_SLOT_WORDS, end):
        return True
    places = [piece for piece in reading.pieces if any(known.kind == meaning.kind for known in piece.meanings)]
    return any(
        (piece.start >= end and text[end : piece.start].strip() in _LIST_JOINERS)
        or (piece.end <= start and text[piece.end : start].strip() in _LIST_JOINERS)
        for piece in places
    )

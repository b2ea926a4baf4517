"""Correct misspelt known words, conservatively: an unknown word is better asked about than turned into another.

A Latin word is compared with the words of aliases, dates and longer ordinary words by Damerau-Levenshtein
distance. The first letter must agree or be swapped with the second; short words may only have letters swapped,
lost or doubled, longer ones also a neighbouring key or another vowel hit; a tie corrects nothing. For Chinese see
`tools.text.chinese_spelling`.
"""

from collections.abc import Iterator

from rapidfuzz.distance import DamerauLevenshtein

from tools.text.chinese_spelling import Edit, find_chinese_edits
from tools.text.lattice import Piece, Reading
from tools.text.tokens import Token
from tools.text.vocabulary import Vocabulary

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
_SHORTEST_WORD = 4
_SHORTEST_DOUBLED = 3
_SHORTEST_SUBSTITUTED = 6
_SHORTEST_TWO_EDITS = 9
_SHORTEST_ORDINARY = 6
_SHORTEST_HALF = 4
_VOWELS = "aeiouy"
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_KEYS = {key: (row, column) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}


def find_edits(text: str, reading: Reading, vocabulary: Vocabulary) -> tuple[Edit, ...]:
    """Corrections for the unmatched parts of `reading`, in order and without overlap."""
    edits = sorted(
        (*_latin(reading, vocabulary), *find_chinese_edits(text, reading, vocabulary)), key=lambda edit: edit.start
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
            or len(token.text) < _SHORTEST_DOUBLED
            or token.text in known
        ):
            continue
        halves = _split(token.text, vocabulary)
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


def _split(word: str, vocabulary: Vocabulary) -> str | None:
    """Two known words that were run together: "eastchina", "thatfell"; not "downtown", which is a word of its own.

    Two words of different aliases make a new word as often as not, so one of the two must be plain.
    """
    plain = _DATE_WORDS | (vocabulary.known_words - vocabulary.alias_words - vocabulary.unknown_words)
    for cut in range(_SHORTEST_HALF, len(word) - _SHORTEST_HALF + 1):
        left, right = word[:cut], word[cut:]
        meaningful = [half in vocabulary.alias_words or half in _DATE_WORDS for half in (left, right)]
        known = all(half in vocabulary.alias_words or half in plain for half in (left, right))
        may_meet = (left, right) in vocabulary.word_pairs or left in plain or right in plain
        if known and may_meet and any(meaningful):
            return f"{left} {right}"
    return None


def _neighbours(reading: Reading, piece: Piece) -> tuple[str, str]:
    before = reading.tokens[piece.first - 1].text if piece.first else ""
    after = reading.tokens[piece.last].text if piece.last < len(reading.tokens) else ""
    return before, after


def _nearest(word: str, neighbours: tuple[str, str], vocabulary: Vocabulary) -> tuple[str, int] | None:
    """The one known word that `word` is a misspelling of; None if there is none or more than one."""
    targets = vocabulary.alias_words | _DATE_WORDS
    ordinary = {other for other in vocabulary.known_words - targets if len(other) >= _SHORTEST_ORDINARY}
    if len(word) < _SHORTEST_WORD:
        doubled = [target for target in targets if len(target) == _SHORTEST_WORD and _is_undoubled(word, target)]
        return (doubled[0], 1) if len(doubled) == 1 else None
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


def _is_undoubled(word: str, target: str) -> bool:
    """Whether `word` is `target` with one of two equal letters missing: "fel" for "fell"."""
    return any(
        target[index] == target[index + 1] and word == target[:index] + target[index + 1 :]
        for index in range(len(target) - 1)
    )


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
    if len(word) == len(target) and not completes_a_name and not _may_be_substituted(word, target):
        return None
    return int(distance)


def _may_be_substituted(word: str, target: str) -> bool:
    """Whether letters differ by order, or in a longer word by neighbouring keys or vowels: not retain, retail."""
    if sorted(word) == sorted(target):
        return True
    wrong = [pair for pair in zip(word, target, strict=True) if pair[0] != pair[1]]
    return len(target) >= _SHORTEST_SUBSTITUTED and all(_are_near(*pair) for pair in wrong)


def _are_near(one: str, other: str) -> bool:
    if one in _VOWELS and other in _VOWELS:
        return True
    if one not in _KEYS or other not in _KEYS:
        return False
    (row, column), (other_row, other_column) = _KEYS[one], _KEYS[other]
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1

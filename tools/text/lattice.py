"""Choose the readings that cover a text best.

Every known word, date and amount is a candidate over some tokens. The reading that leaves the least text
unexplained, then has the fewest parts, wins (Viterbi over token positions): 上季度 is one period, not 上 and 季度.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from tools.text.date_expressions import DateMention
from tools.text.dates import find_dates
from tools.text.quantities import QuantityMention, find_quantities
from tools.text.tokens import Token, joined, tokenise
from tools.text.vocabulary import Meaning, Vocabulary

PieceKind = Literal["alias", "ordinary", "unknown", "date", "quantity", "unmatched", "sign"]

_PART_COST = {
    "alias": 1.0,
    "date": 1.0,
    "quantity": 1.0,
    "ordinary": 1.01,
    "unknown": 2.0,
    "unmatched": 5.0,
    "sign": 0.0,
}
# A bare number gives way to anything that explains it: 1847 after "in" is a year, if one out of range.
_BARE_NUMBER_COST = 1.1
_UNPARSED_DATE_COST = 1.05

# Words that mean a direction only next to an amount: "up 15%", but "look up".
_CONTEXTUAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![a-z])up(?= (?:by|more|over|at least|almost|nearly|about|some)(?![a-z])| ?\d)"), "increase"),
    (re.compile(r"(?<![a-z])off(?= (?:by|more|over|at least)(?![a-z])| ?\d)"), "decrease"),
    (re.compile(r"(?<![a-z])lost(?= (?:more|over|at least)(?![a-z])| ?\d)"), "decrease"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One part of a reading: some tokens and what they are taken for."""

    first: int
    """Index of its first token; `last` is exclusive."""
    last: int
    start: int
    end: int
    kind: PieceKind
    meanings: tuple[Meaning, ...] = ()
    mention: DateMention | QuantityMention | None = None

    @property
    def cost(self) -> float:
        """What the piece adds to a reading; lower is better."""
        if isinstance(self.mention, DateMention) and self.mention.period is None:
            return _UNPARSED_DATE_COST
        if isinstance(self.mention, QuantityMention) and self.mention.kind == "number":
            return _BARE_NUMBER_COST
        return _PART_COST[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The tokens of a text and the pieces that cover them, in order."""

    tokens: tuple[Token, ...]
    pieces: tuple[Piece, ...]


def read(text: str, vocabulary: Vocabulary, today: date) -> Reading:
    """The best reading of lower-case `text`."""
    tokens = tokenise(text)
    candidates: list[list[Piece]] = [[] for _ in tokens]
    for piece in _candidates(text, tokens, vocabulary, today):
        candidates[piece.first].append(piece)
    best: list[tuple[float, Piece | None]] = [(0.0, None), *((float("inf"), None) for _ in tokens)]
    for position, options in enumerate(candidates):
        so_far = best[position][0]
        for piece in options:
            if so_far + piece.cost < best[piece.last][0]:
                best[piece.last] = (so_far + piece.cost, piece)
    pieces: list[Piece] = []
    position = len(tokens)
    while position and (chosen := best[position][1]) is not None:
        pieces.append(chosen)
        position = chosen.first
    return Reading(tokens=tokens, pieces=tuple(reversed(pieces)))


def _candidates(text: str, tokens: Sequence[Token], vocabulary: Vocabulary, today: date) -> Iterator[Piece]:
    yield from _known_words(text, tokens, vocabulary)
    firsts = {token.start: index for index, token in enumerate(tokens)}
    lasts = {token.end: index + 1 for index, token in enumerate(tokens)}
    mentions: list[DateMention | QuantityMention] = [*find_dates(text, today), *find_quantities(text)]
    # Of two mentions over the same text the parsed one comes first and wins the tie.
    for mention in sorted(mentions, key=lambda item: isinstance(item, DateMention) and item.period is None):
        first, last = firsts.get(_skip_space(text, mention.start)), lasts.get(_trim_space(text, mention.end))
        if first is not None and last is not None and first < last:
            kind: PieceKind = "date" if isinstance(mention, DateMention) else "quantity"
            yield _piece(tokens, first, last, kind, mention=mention)
    for pattern, value in _CONTEXTUAL:
        for match in pattern.finditer(text):
            meaning = Meaning(role="alias", kind="direction", values=(value,), alias=match[0])
            yield _piece(tokens, firsts[match.start()], firsts[match.start()] + 1, "alias", meanings=(meaning,))
    for index, token in enumerate(tokens):
        yield _piece(tokens, index, index + 1, "sign" if token.kind == "sign" else "unmatched")


def _known_words(text: str, tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Piece]:
    for first, token in enumerate(tokens):
        if token.kind == "sign":
            continue
        key: list[str] = []
        previous = token
        for last in range(first, len(tokens)):
            current = tokens[last]
            if current.kind == "sign":
                continue  # the gap to the next word is judged by `joined`
            if current is not token and not joined(text, previous, current):
                break
            key.append(current.text)
            if len(key) > vocabulary.longest_alias:
                break
            previous = current
            meanings = vocabulary.lookup(tuple(key))
            if meanings:
                aliases = tuple(meaning for meaning in meanings if meaning.role == "alias")
                yield _piece(
                    tokens,
                    first,
                    last + 1,
                    meanings[0].role if not aliases else "alias",
                    meanings=aliases or meanings,
                )


def _piece(
    tokens: Sequence[Token],
    first: int,
    last: int,
    kind: PieceKind,
    *,
    meanings: tuple[Meaning, ...] = (),
    mention: DateMention | QuantityMention | None = None,
) -> Piece:
    start, end = tokens[first].start, tokens[last - 1].end
    return Piece(first=first, last=last, start=start, end=end, kind=kind, meanings=meanings, mention=mention)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _trim_space(text: str, position: int) -> int:
    while position > 0 and text[position - 1].isspace():
        position -= 1
    return position

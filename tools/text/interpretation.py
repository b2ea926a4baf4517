"""Turn a reading into entities and unresolved mentions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.text.date_expressions import DateMention
from tools.text.lattice import Piece, Reading
from tools.text.quantities import QuantityMention
from tools.text.request import Entity, Unresolved
from tools.text.vocabulary import Vocabulary

_GROUPING = frozenset(
    {
        "by",
        "per",
        "each",
        "every",
        "按",
        "按照",
        "每",
        "每个",
        "每座",
        "每一个",
        "各",
        "各个",
        "各座",
        "分",
        "分别按",
    }
)
_PLACE_AFTER = (
    "区域",
    "地区",
    "大区",
    "片区",
    "省",
    "市",
    "州",
    "县",
    "国",
    "洲",
    "region",
    "area",
    "province",
    "city",
    "state",
)
_PLACE_BEFORE = frozenset({"in", "from", "at", "across", "在", "去"})
_GOVERNING = "governing"  # a qualifier that changes the meaning of what follows it: not, excluding
_NEVER_SINGLE = frozenset(
    {"metric", "dimension", "granularity", "analysis", "comparison", "comparison_base", "direction", "scope"}
)
_ONE_BY_ONE = frozenset(
    {
        "which",
        "each",
        "every",
        "哪些",
        "哪个",
        "哪家",
        "哪几家",
        "哪几个",
        "各",
        "各个",
        "各家",
        "每",
        "每个",
        "每家",
    }
)
"""Words that ask for the members of what follows."""
_MEASURE_WORDS = frozenset({"的", "个", "家", "款", "种"})
_RELATIVE = frozenset({"that", "which", "whose", "who", "where", "with"})
_LIST_WORDS = frozenset({"and", "or", "和", "与", "跟", "及", "以及"})
_BASE_MARKERS = frozenset(
    {
        "than",
        "compared with",
        "compared to",
        "versus",
        "vs",
        "against",
        "relative to",
        "比",
        "较",
        "相比",
        "比起",
        "相对",
    }
)
_BASE_AFTER = frozenset({"相比", "比", "比较", "对比"})
_PERIOD_HINTS = ("年", "季", "月", "周", "quarter", "month", "year", "week")
_MAX_ABSORBED_ORDINARY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """What a reading says; spans are positions in the text that was read."""

    entities: tuple[Entity, ...]
    unresolved: tuple[Unresolved, ...]


def interpret(text: str, reading: Reading, vocabulary: Vocabulary) -> Interpretation:
    """Entities and unresolved mentions of `reading`, each in the order of the text."""
    return _Interpreter(text, reading, vocabulary).run()


class _Interpreter:
    """One pass over the pieces; keeps the position and what was found."""

    def __init__(self, text: str, reading: Reading, vocabulary: Vocabulary) -> None:
        self._text = text
        self._pieces = [piece for piece in reading.pieces if piece.kind != "sign"]
        self._vocabulary = vocabulary
        self._entities: list[Entity] = []
        self._unresolved: list[Unresolved] = []

    def run(self) -> Interpretation:
        position = 0
        while position < len(self._pieces):
            position = self._take(position)
        return Interpretation(entities=tuple(self._entities), unresolved=tuple(self._unresolved))

    def _take(self, position: int) -> int:
        """Handle the piece at `position` and return the next one to handle."""
        piece = self._pieces[position]
        match piece.kind:
            case "alias" if self._asks_for_single_ones(position):
                self._report("member", piece.start, piece.end)
            case "alias":
                self._alias(position)
            case "date":
                self._date(position)
            case "quantity":
                self._quantity(piece)
            case "unknown" if piece.meanings[0].kind == _GOVERNING:
                return self._qualifier(position)
            case "unknown" | "unmatched":
                return self._mention(position)
            case _:
                pass
        return position + 1

    def _alias(self, position: int) -> None:
        piece = self._pieces[position]
        before = self._pieces[position - 1] if position else None
        grouped = (
            before is not None and before.kind in ("ordinary", "unknown") and self._words(before) in _GROUPING
        )
        for meaning in piece.meanings:
            start = before.start if grouped and before and meaning.kind == "dimension" else piece.start
            self._entities.append(
                Entity(
                    kind="grouping" if start != piece.start else meaning.kind,
                    values=meaning.values,
                    text=self._text[start : piece.end],
                    start=start,
                    end=piece.end,
                    confidence=1.0,
                    origin="alias",
                )
            )

    def _asks_for_single_ones(self, position: int) -> bool:
        """Whether a value stands where things are asked for one by one: "which stores", 下降超15%的门店.

        Taken as a value it would ask about all stores together. Not before its noun: "which online products".
        """
        piece = self._pieces[position]
        named = self._vocabulary.place_kinds | _NEVER_SINGLE
        if any(meaning.kind in named or len(meaning.values) > 1 for meaning in piece.meanings):
            return False
        after = position + 1
        while after < len(self._pieces) and (
            self._words(self._pieces[after]) in _LIST_WORDS
            or self._is_of(after, frozenset(meaning.kind for meaning in piece.meanings))
        ):
            after += 1
        following = self._pieces[after] if after < len(self._pieces) else None
        if following is not None and self._is_of(after, frozenset({"dimension"})):
            return False
        is_plural = self._words(piece).endswith("s") and not any(
            meaning.alias.lower().endswith("s") for meaning in piece.meanings
        )
        if is_plural and following is not None and self._words(following) in _RELATIVE:
            return True
        before = position - 1
        while before >= 0 and self._words(self._pieces[before]) in _MEASURE_WORDS:
            before -= 1
        if before < 0:
            return False
        if self._words(self._pieces[before]) in _ONE_BY_ONE:
            return True
        is_told_apart = self._pieces[before].kind == "quantity" or self._is_of(before, frozenset({"direction"}))
        return is_told_apart and (is_plural or before < position - 1)

    def _date(self, position: int) -> None:
        piece = self._pieces[position]
        period = piece.mention.period if isinstance(piece.mention, DateMention) else None
        if period is None:
            self._report("period", piece.start, piece.end)
            return
        if self._is_base(position):
            period = replace(period, is_base=True)
        self._entities.append(
            Entity(
                kind="period",
                values=(period.start.isoformat(), period.end.isoformat()),
                text=self._text[piece.start : piece.end],
                start=piece.start,
                end=piece.end,
                confidence=0.7 if period.assumed_year else 1.0,
                origin="date",
                period=period,
            )
        )

    def _is_base(self, position: int) -> bool:
        """Whether the period is what is compared with: "versus Q3", 比上季度, 与上季度相比."""
        before = self._content_before(position)
        after = self._words(self._pieces[position + 1]) if position + 1 < len(self._pieces) else ""
        return (before is not None and self._words(before) in _BASE_MARKERS) or (
            after in _BASE_AFTER
            and position > 0
            and self._words(self._pieces[position - 1]) in {"与", "和", "跟", "同"}
        )

    def _content_before(self, position: int) -> Piece | None:
        for piece in reversed(self._pieces[max(0, position - 1 - _MAX_ABSORBED_ORDINARY) : position]):
            if piece.kind != "ordinary" or self._words(piece) in _BASE_MARKERS:
                return piece
        return None

    def _quantity(self, piece: Piece) -> None:
        mention = piece.mention
        if isinstance(mention, QuantityMention):
            self._entities.append(
                Entity(
                    kind=mention.kind,
                    values=mention.values,
                    text=self._text[piece.start : piece.end],
                    start=piece.start,
                    end=piece.end,
                    confidence=1.0,
                    origin=mention.origin,
                    quantity=mention.quantity,
                )
            )

    def _qualifier(self, position: int) -> int:
        """A condition such as "excluding" changes what follows it, so both are left to be asked about."""
        piece = self._pieces[position]
        following = position + 1
        while (
            following < len(self._pieces)
            and following - position <= _MAX_ABSORBED_ORDINARY
            and self._pieces[following].kind == "ordinary"
        ):
            following += 1
        target = self._pieces[following] if following < len(self._pieces) else None
        if target is None or target.kind == "ordinary" or _separated(self._text[piece.end : target.start]):
            self._report("qualifier", piece.start, piece.end)
            return position + 1
        if self._words(piece) in _GROUPING and self._is_of(following, frozenset({"dimension"})):
            return position + 1  # "per city": `_alias` makes it a grouping
        if target.kind == "date" and self._words(piece) in _BASE_MARKERS:
            return position + 1  # `_date` marks the period as the base
        if target.kind == "quantity":
            self._report("qualifier", piece.start, piece.end)
            return position + 1
        end = target.end
        if target.kind in ("unknown", "unmatched"):
            following = self._run_of_unknowns(following)
            end = self._pieces[following - 1].end
        else:
            following += 1
        self._report("qualifier", piece.start, end)
        return following

    def _mention(self, position: int) -> int:
        last = self._run_of_unknowns(position)
        run = self._pieces[position:last]
        self._report(self._guess(run, position, last), run[0].start, run[-1].end)
        return last

    def _run_of_unknowns(self, position: int) -> int:
        """Neighbouring unknown words are one mention ("profit margin"), also across a lone Chinese particle."""
        last = position + 1
        while last < len(self._pieces):
            gap = self._text[self._pieces[last - 1].end : self._pieces[last].start]
            if self._is_unknown(last) and gap.strip(" -_'/&.") == "" and len(gap) <= 3:
                last += 1
            elif self._is_particle(last) and self._is_unknown(last + 1) and gap == "":
                last += 2
            else:
                break
        return last

    def _is_unknown(self, position: int) -> bool:
        if position >= len(self._pieces):
            return False
        piece = self._pieces[position]
        return piece.kind == "unmatched" or (piece.kind == "unknown" and piece.meanings[0].kind != _GOVERNING)

    def _is_particle(self, position: int) -> bool:
        piece = self._pieces[position]
        is_lone = (
            piece.kind == "ordinary" and piece.end - piece.start == 1 and not self._text[piece.start].isascii()
        )
        touches = position + 1 < len(self._pieces) and self._pieces[position + 1].start == piece.end
        return is_lone and touches and self._words(piece) not in _LIST_WORDS and self._words(piece) != "的"

    def _guess(self, run: Sequence[Piece], position: int, last: int) -> str:
        kinds = [piece.meanings[0].kind for piece in run if piece.kind == "unknown"]
        if kinds:
            return kinds[0]
        words = self._text[run[0].start : run[-1].end]
        after = self._text[run[-1].end :].lstrip()
        before = self._words(self._pieces[position - 1]) if position else ""
        if (
            after.startswith(_PLACE_AFTER)
            or words.endswith(("省", "市", "州", "县"))
            or self._is_listed_place(position, last)
        ):
            return "place"
        if words.isdigit():
            return "number"
        if any(hint in words for hint in _PERIOD_HINTS):
            return "period"
        return "place" if before in _PLACE_BEFORE else "unknown"

    def _is_listed_place(self, position: int, last: int) -> bool:
        """Joined by "and" with a known place."""
        joined_left = position > 1 and self._words(self._pieces[position - 1]) in _LIST_WORDS
        joined_right = last + 1 < len(self._pieces) and self._words(self._pieces[last]) in _LIST_WORDS
        places = self._vocabulary.place_kinds
        return (joined_left and self._is_of(position - 2, places)) or (
            joined_right and self._is_of(last + 1, places)
        )

    def _is_of(self, position: int, kinds: frozenset[str]) -> bool:
        return any(
            meaning.role == "alias" and meaning.kind in kinds for meaning in self._pieces[position].meanings
        )

    def _words(self, piece: Piece) -> str:
        return self._text[piece.start : piece.end]

    def _report(self, kind: str, start: int, end: int) -> None:
        self._unresolved.append(Unresolved(kind=kind, text=self._text[start:end], start=start, end=end))


def _separated(gap: str) -> bool:
    """A comma or full stop ends what a qualifier governs."""
    return any(sign in gap for sign in ",;.!?。;、:")

"""Find amounts of money and read their separators from what the whole page shows.

``1.234`` is a thousand in Germany and one and a bit in London. An amount whose separators can be read two ways
keeps both readings; the page's other amounts decide.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from agents.packs.invoice.extraction.frame import Segment, Span
from agents.packs.invoice.extraction.marks import MARK_PATTERN

_NUMBER = (
    r"\d{1,3}(?:(?P<sep>[ '.,])\s?\d{3}(?!\d))(?:(?P=sep)\s?\d{3}(?!\d))*(?:\s?[.,]\s?\d{1,3}(?!\d))?"
    r"|\d+(?:\s?[.,]\s?\d{1,4}(?!\d))?"
)
_AMOUNT = re.compile(
    rf"(?P<open>\()?\s?(?P<sign>[-+])?\s?(?:(?P<before>{MARK_PATTERN})\s?)?(?P<sign2>[-])?\s?(?P<number>{_NUMBER})"
    rf"(?:[.,]?(?P<dash>-{{1,2}})(?![\d\w]))?(?:\s?(?P<after>{MARK_PATTERN}))?(?P<close>\s?\))?"
    r"(?P<trail>\s?-(?![\w-])|\s?cr\b)?"
)
_PERCENT_AFTER = re.compile(r"\s?(?:%|percent|prozent|pct)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number that may be an amount of money, with the value under the page's separators."""

    span: Span
    """The number with its sign and currency mark."""
    value: Decimal
    alternatives: tuple[Decimal, ...] = ()
    """Other values, when the separators can be read another way."""
    decimals: int
    """Digits after the decimal sign."""
    mark: str = ""
    """Currency mark beside the number, folded; empty when there is none."""
    mark_span: Span | None = None
    percent: bool = False
    ambiguous: bool = False
    """True when nothing on the page says which reading is meant."""

    @property
    def looks_like_money(self) -> bool:
        """True for a number with a currency mark or with two decimals."""
        return not self.percent and (bool(self.mark) or self.decimals == 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separators:
    """How the page writes numbers: counts of decimal points and decimal commas seen without doubt."""

    points: float = 0.0
    commas: float = 0.0
    grouped: int = 0
    """Amounts such as 86,100 that can be read two ways."""
    places: int = field(default=2)
    """Digits that amounts of this document have after the decimal sign."""

    @property
    def decimal_sign(self) -> str | None:
        """``.`` or ``,``, or None when the page shows neither."""
        if self.points == self.commas:
            return None
        return "." if self.points > self.commas else ","


def find_amounts(
    segments: Sequence[Segment], taken: Iterable[Span], languages: dict[str, float]
) -> tuple[list[Amount], Separators]:
    """Every number outside `taken` spans (dates, account numbers), read with the page's separators."""
    blocked: dict[int, list[Span]] = {}
    for span in taken:
        blocked.setdefault(span.segment.index, []).append(span)
    matches = [
        (segment, match)
        for segment in segments
        for match in _AMOUNT.finditer(segment.folded.plain)
        if _allowed(segment, match, blocked.get(segment.index, ()))
    ]
    separators = _separators([match["number"] for _, match in matches], languages)
    return [_amount(segment, match, separators) for segment, match in matches], separators


def readings(number: str) -> list[tuple[Decimal, str, int]]:
    """Every way to read a printed number: value, decimal sign (empty for a whole number) and decimals."""
    text = re.sub(r"\s(?=[.,])|(?<=[.,])\s", "", number)
    text = re.sub(r"[ ']", "", text)
    signs = [char for char in text if char in ".,"]
    if not signs:
        return [(Decimal(text), "", 0)]
    last = max(text.rfind("."), text.rfind(","))
    tail = len(text) - last - 1
    whole = Decimal(re.sub(r"[.,]", "", text))
    as_decimal = (whole.scaleb(-tail), text[last], tail)
    if len(set(signs)) == 2 or " " in number.strip() or "'" in number:
        return [as_decimal] if tail != 3 or len(set(signs)) == 2 else [as_decimal, (whole, "", 0)]
    if len(signs) > 1:
        # 12.345.67 is what the OCR makes of 12,345.67: three digits group, two are cents.
        return [(whole, "", 0)] if tail == 3 else [as_decimal]
    if tail == 3 and last <= 3 and text[:last] != "0":
        return [(whole, "", 0), as_decimal]
    return [as_decimal]


def _allowed(segment: Segment, match: re.Match[str], blocked: Sequence[Span]) -> bool:
    start, end = match.span("number")
    plain = segment.folded.plain
    first, last = segment.folded.span(start, end)
    if any(span.start < last and first < span.end for span in blocked):
        return False
    before, after = plain[start - 1 : start], plain[end : end + 1]
    if before and (
        before.isdigit() or before in "/#_⁄" or (before in ".," and start > 1 and plain[start - 2].isdigit())
    ):
        return False
    if before.isalpha() and before.isascii() and not match["before"]:
        # A letter right before: an article number, unless it is a word the OCR glued on (Total1,234.50).
        return bool(re.search(r"[.,]\s?\d\d$", match["number"])) and plain[max(0, start - 3) : start].isalpha()
    if before == "-" and start > 1 and plain[start - 2].isalnum():
        return bool(re.search(r"[.,]\d\d$", match["number"])) and plain[start - 2].isalpha()
    return not (
        after
        and (
            after in "/_⁄"
            or (after == "-" and plain[end + 1 : end + 2].isalnum())
            or (after.isalpha() and after.isascii() and not match["after"])
        )
    )


def _separators(numbers: Sequence[str], languages: dict[str, float]) -> Separators:
    points = commas = 0.0
    doubtful: set[str] = set()
    places: dict[int, int] = {}
    for number in numbers:
        options = readings(number)
        if len(options) != 1:
            doubtful.add(number)
            continue
        _, sign, decimals = options[0]
        plain = re.sub(r"[ ']", "", number)
        if not sign and any(char in number for char in ".,"):
            # Grouping only: the other sign would be the decimal one.
            points += "," in plain
            commas += "." in plain
        elif decimals == 2 or (sign and len(set(plain) & set(".,")) == 2):
            points += sign == "."
            commas += sign == ","
        if decimals in {0, 2} and len(re.sub(r"\D", "", number)) > 2:
            places[decimals] = places.get(decimals, 0) + 1
    if points == commas:
        points += 0.2 * (languages.get("en", 0.0) + languages.get("zh", 0.0))
        commas += 0.2 * sum(languages.get(name, 0.0) for name in ("de", "fr", "nl", "es", "it", "pt"))
    return Separators(
        points=points, commas=commas, grouped=len(doubtful), places=0 if places and not places.get(2) else 2
    )


def _amount(segment: Segment, match: re.Match[str], separators: Separators) -> Amount:
    options = readings(match["number"])
    chosen = options[0]
    ambiguous = False
    if len(options) > 1:
        sign = separators.decimal_sign
        # With 1.234 the point is grouping where the page's decimal sign is a comma, and decimal otherwise.
        own = next(option[1] for option in options if option[1])
        grouped = next(option for option in options if not option[1])
        chosen = (
            grouped if sign != own or separators.places == 0 else next(option for option in options if option[1])
        )
        # Two or more of them, and no decimals anywhere: three decimals in every amount would be strange.
        alone = separators.grouped < 2 or separators.places == 2
        ambiguous = (sign is None or max(separators.points, separators.commas) < 1) and alone
        if sign == own and separators.places == 2:
            # A third decimal is rare in money: keep the doubt.
            ambiguous = True
    # A dash behind whole units stands for no cents (12.-), behind cents it is a minus.
    dash = bool(match["dash"])
    negative = bool(
        (dash and chosen[2] == 2)
        or match["sign"] == "-"
        or match["sign2"]
        or match["trail"]
        or (match["open"] and match["close"])
    )
    factor = -1 if negative else 1
    whole = match.span()
    start = (
        match.start("open")
        if negative and match["open"]
        else min(match.start(name) for name in ("sign", "before", "sign2", "number") if match.start(name) >= 0)
    )
    end = (
        whole[1]
        if negative
        else max(match.end(name) for name in ("number", "dash", "after") if match.end(name) >= 0)
    )
    group = "before" if match["before"] else "after" if match["after"] else ""
    mark_span = (
        Span(segment=segment, **dict(zip(("start", "end"), segment.folded.span(*match.span(group)), strict=True)))
        if group
        else None
    )
    first, last = segment.folded.span(start, end)
    return Amount(
        span=Span(segment=segment, start=first, end=last),
        value=chosen[0] * factor,
        alternatives=tuple(option[0] * factor for option in options if option is not chosen),
        decimals=2 if dash else chosen[2],
        mark=match[group].strip() if group else "",
        mark_span=mark_span,
        percent=bool(_PERCENT_AFTER.match(segment.folded.plain[match.end("number") :])),
        ambiguous=ambiguous,
    )


def printed(value: Decimal, places: int) -> str:
    """The value as a decimal-point string with at least `places` decimals."""
    exponent = value.as_tuple().exponent
    digits = max(places, -exponent if isinstance(exponent, int) else 0)
    return f"{value:.{digits}f}"


def tolerance(value: Decimal) -> Decimal:
    """How far rounded sums may be apart: two cents, or one unit where amounts have no decimals."""
    exponent = value.as_tuple().exponent
    whole = not isinstance(exponent, int) or exponent >= 0
    return Decimal(1) if whole and abs(value) >= 100 else Decimal("0.02")

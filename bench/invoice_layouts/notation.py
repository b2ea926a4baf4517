"""How one business writes numbers, money and dates: marks, symbols, order, month names."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from bench.invoice_layouts.sheet import Run

_WITHOUT_DECIMALS = frozenset({"JPY"})

# Only symbols that the page itself makes certain: "$" alone stands for USD on a page from the United States alone.
_SYMBOLS: dict[str, tuple[str, ...]] = {
    "EUR": ("€",),
    "GBP": ("£",),
    "PLN": ("zł",),
    "SGD": ("S$",),
    "HKD": ("HK$",),
    "CAD": ("CA$", "C$"),
    "AUD": ("A$", "AU$"),
}
_HOME_SYMBOLS: dict[tuple[str, str], tuple[str, ...]] = {
    ("US", "USD"): ("$",),
    ("CN", "CNY"): ("¥", "￥"),
    ("JP", "JPY"): ("¥",),
    ("SE", "SEK"): ("kr",),
    ("DK", "DKK"): ("kr.",),
    ("CH", "CHF"): ("Fr.", "CHF", "CHF"),
}
_STYLES: dict[str, tuple[str, ...]] = {
    "de": ("{n} {s}", "{n} {s}", "{n} {c}", "{c} {n}", ""),
    "fr": ("{n} {s}", "{n} {s}", "{n} {c}", ""),
    "nl": ("{s} {n}", "{s} {n}", "{c} {n}", "{s}{n}", ""),
    "es": ("{n} {s}", "{n} {s}", "{n} {c}", "{n}{s}", ""),
    "en": ("{s}{n}", "{s}{n}", "{c} {n}", "{n} {c}", ""),
    "zh": ("{s}{n}", "{s}{n}", "{s} {n}", "{c} {n}", ""),
}
_AFTER = frozenset({"PLN", "SEK", "DKK"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """The writing habits of one business."""

    currency: str
    """ISO 4217 code."""
    decimal: str
    thousands: str
    places: int
    style: str
    """Template of an amount of money: {n} number, {s} symbol, {c} code; empty where the currency stands apart."""
    symbol: str
    dates: str
    months: Sequence[str]
    short_months: Sequence[str]

    @property
    def unmarked(self) -> bool:
        """Whether amounts are printed as bare numbers, so that the label must name the currency."""
        return not self.style

    @property
    def mark(self) -> str:
        """The symbol or code this business puts at its amounts."""
        return self.symbol if "{s}" in self.style else self.currency

    def number(self, value: Decimal, places: int | None = None) -> str:
        """A number with this business's decimal and thousands marks."""
        text = f"{value:,.{self.places if places is None else places}f}"
        return text.replace(",", "\0").replace(".", self.decimal).replace("\0", self.thousands)

    def money(self, value: Decimal, field: str | None = None) -> list[Run]:
        """An amount with its currency as this business prints it; the number belongs to `field`."""
        number = Run(self.number(value), field)
        if self.unmarked:
            return [number]
        before, after = self.style.split("{n}")
        return [run for run in (*self._marked(before), number, *self._marked(after)) if run.text]

    def date(self, day: dt.date) -> str:
        """A date as this business writes it."""
        return self.dates.format(
            d=day.day,
            dd=f"{day.day:02}",
            m=day.month,
            mm=f"{day.month:02}",
            yy=f"{day.year % 100:02}",
            yyyy=day.year,
            month=self.months[day.month - 1],
            mon=self.short_months[day.month - 1],
            MON=self.short_months[day.month - 1].upper(),
        )

    def _marked(self, part: str) -> list[Run]:
        text = part.replace("{s}", self.symbol).replace("{c}", self.currency)
        bare = text.strip()
        if not bare:
            return [Run(text)]
        lead, _, tail = text.partition(bare)
        return [Run(lead), Run(bare, "currency"), Run(tail)]


def choose_notation(
    rng: Random,
    *,
    country: str,
    language: str,
    currency: str,
    marks: Sequence[str],
    dates: str,
    months: Sequence[str],
    short_months: Sequence[str],
) -> Notation:
    """Draw the writing habits of a business of that country, language and currency."""
    symbols = _HOME_SYMBOLS.get((country, currency)) or _SYMBOLS.get(currency)
    if currency == "USD" and symbols is None:
        symbols = ("US$",)
    style = rng.choice(_STYLES[language])
    if currency in _AFTER:
        style = rng.choice(("{n} {s}", "{n} {c}", "{c} {n}", ""))
    if country in {"MX", "CA", "AU"} and currency in {"MXN", "CAD", "AUD"} and rng.random() < 0.6:
        style, symbols = "{s}{n} {c}", ("$",)
    if country == "CH" and style.startswith("{n}"):
        style = "{c} {n}"
    if symbols is None:
        style = style.replace("{s}{n}", "{c} {n}").replace("{n}{s}", "{n} {c}").replace("{s}", "{c}")
    return Notation(
        currency=currency,
        decimal=marks[0],
        thousands=marks[1],
        places=0 if currency in _WITHOUT_DECIMALS else 2,
        style=style,
        symbol=rng.choice(symbols) if symbols else currency,
        dates=dates,
        months=months,
        short_months=short_months,
    )

"""What one invented invoice says, independent of how it is laid out."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from bench.invoice_layouts.notation import Notation
from bench.invoice_layouts.sheet import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A company with its address as printed."""

    name: str
    street: str
    city: str
    country: str
    """ISO 3166 code."""
    country_name: str
    vat: str
    phone: str
    web: str
    legal: tuple[str, ...] = ()

    @property
    def address(self) -> list[str]:
        """Street, town and country, a line each."""
        return [self.street, self.city, self.country_name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of the invoice."""

    code: str
    description: str
    quantity: Decimal
    unit: str
    price: Decimal
    rate: Decimal
    amount: Decimal
    hs: str = ""
    """Tariff code, digits only; empty for services."""
    hs_printed: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxLine:
    """Tax at one rate, in percent."""

    rate: Decimal
    base: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where to pay."""

    bank: str
    bic: str
    iban: str
    """Without spaces; empty where the country has none."""
    iban_printed: str
    number: str
    """Domestic account number, for countries without IBAN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """Everything that a page may print. Amounts are in `notation.currency`."""

    language: str
    words: dict[str, str]
    """The one wording that this invoice uses for each label."""
    notation: Notation
    seller: Party
    buyer: Party
    number: str
    date: dt.date
    due: dt.date | None
    """None where the page states the terms only."""
    days: int
    items: tuple[Item, ...]
    goods_total: Decimal
    discount: Decimal
    shipping: Decimal
    net: Decimal
    taxes: tuple[TaxLine, ...]
    tax: Decimal
    total: Decimal
    prices_include_tax: bool
    deposit: Decimal
    prior: Decimal
    incoterm: str
    origin: str
    account: Account
    order: str
    order_date: dt.date
    delivery_date: dt.date
    delivery_note: str
    customer: str
    project: str
    person: str
    weight: str

    def word(self, key: str) -> str:
        """The label this invoice uses for `key`."""
        return self.words[key]

    def money(self, value: Decimal, field: str | None = None) -> list[Run]:
        """An amount as this business prints it."""
        return self.notation.money(value, field)

    def day(self, value: dt.date, field: str | None = None) -> Run:
        """A date as this business prints it."""
        return Run(self.notation.date(value), field)

    @property
    def short_terms(self) -> str:
        """The payment terms in few words."""
        return self.word("terms_short").format(days=self.days)

    @property
    def terms(self) -> str:
        """The payment terms in words."""
        return self.word("terms").format(days=self.days)

    def total_label(self) -> list[Run]:
        """The label of the grand total; it names the currency where amounts carry no mark."""
        key = "total_explicit" if self.deposit or self.prior else "total"
        if not self.notation.unmarked:
            return [Run(self.word(key))]
        return [Run(f"{self.word(key)} "), Run(self.notation.currency, "currency")]

    def tax_label(self, line: TaxLine) -> str:
        """The label of one tax line with its rate."""
        return self.word("tax").format(rate=self.rate_text(line.rate))

    def rate_text(self, rate: Decimal) -> str:
        """A tax rate without needless zeros, e.g. ``8.1`` or ``19``."""
        return f"{rate.normalize():f}".replace(".", self.notation.decimal)

    def quantity_text(self, item: Item) -> str:
        """A quantity: whole where it is whole."""
        whole = item.quantity == item.quantity.to_integral_value()
        return self.notation.number(item.quantity, 0 if whole else 2)

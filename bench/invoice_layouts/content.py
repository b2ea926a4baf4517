"""Invents what an invoice says: companies, goods, amounts that add up, references that mislead."""

import datetime as dt
import functools
import importlib.resources
import tomllib
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from bench.invoice_layouts.accounts import make_bic, make_iban
from bench.invoice_layouts.invoice import Account, Invoice, Item, Party, TaxLine
from bench.invoice_layouts.notation import Notation, choose_notation

_NUMBER_FORMS = (
    "INV-{yyyy}-#####",
    "INV-######",
    "{yyyy}-####",
    "{yyyy}/####",
    "RE-{yyyy}-####",
    "R{yy}-#####",
    "90######",
    "F{yyyy}/####",
    "FA########",
    "VF{yy}-#####",
    "{yy}.####",
    "SI-######",
    "####/{yy}",
    "2###",
    "A-#####",
    "V{yy}######",
)
_CHINESE_NUMBER_FORMS = (
    "INV{yyyy}{mm}{dd}-0#",
    "24442000000#########",
    "FP-{yyyy}-####",
    "{yyyy}{mm}####",
    "########",
)
_INCOTERMS = ("EXW", "FCA", "FOB", "CIF", "CFR", "CPT", "CIP", "DAP", "DDP", "DPU")
_PLACES = {
    "sea": ("Hamburg", "Rotterdam", "Shanghai", "Felixstowe", "Valencia", "Le Havre", "Savannah", "Ningbo"),
    "land": ("Basel", "Warsaw", "Lyon", "Milano", "Graz", "Chicago", "Utrecht", "Birmingham"),
}
_SEA_TERMS = frozenset({"FOB", "CIF", "CFR"})
_PEOPLE = (
    "M. Keller",
    "S. Okafor",
    "J. van Rijn",
    "L. Moreau",
    "A. Nowak",
    "T. Lindgren",
    "P. Iglesias",
    "H. Watanabe",
)
_FOREIGN_BUYERS = ("DE", "FR", "NL", "ES", "GB", "US", "SE", "PL", "CN_EN", "AU", "DK", "IE", "AT")
_TAX_NAMES = {
    "US": ["Sales tax {rate}%", "Tax ({rate}%)"],
    "CA": ["HST {rate}%", "GST/HST ({rate}%)"],
    "AU": ["GST {rate}%", "GST ({rate}%)"],
    "SG": ["GST {rate}%", "Add GST {rate}%"],
    "JP": ["Consumption tax {rate}%", "Consumption tax ({rate}%)"],
}
_ONE_RATE = frozenset({"US", "CA", "JP", "MX"})
"""Countries whose rates depend on the place, not on the goods: one invoice has one."""
_CENT = Decimal("0.01")


@functools.cache
def countries() -> dict[str, dict[str, Any]]:
    """The invented companies and the habits of their countries, by key of ``countries.toml``."""
    text = importlib.resources.files("bench.invoice_layouts").joinpath("countries.toml").read_text("utf-8")
    return tomllib.loads(text)


@functools.cache
def wording(language: str) -> dict[str, Any]:
    """The labels and goods of a language."""
    folder = importlib.resources.files("bench.invoice_layouts").joinpath("wording")
    return tomllib.loads(folder.joinpath(f"{language}.toml").read_text("utf-8"))


def invent(
    rng: Random, *, language: str, kind: str, country: str | None = None, currency: str | None = None
) -> Invoice:
    """Invent one invoice.

    Args:
        rng: source of every choice.
        language: ISO 639 code of the wording.
        kind: ``goods``, ``plain`` (goods without discount, shipping or deposit), ``export``, ``services``,
            ``utility``, ``freight`` or ``till``.
        country: key of ``countries.toml``; drawn among those of the language where None.
        currency: ISO code; drawn among those the country uses where None.
    """
    key = country or rng.choice([name for name, entry in countries().items() if entry["language"] == language])
    place, lexicon = countries()[key], wording(language)
    seller = _party(rng, key, language)
    abroad = kind == "export" or not place["rates"]
    buyer = _party(rng, _buyer_key(rng, key, language, abroad=abroad), language, besides=seller.name)
    currency = currency or (place["currencies"][0] if kind == "till" else rng.choice(place["currencies"]))
    notation = _notation(rng, place, lexicon, seller.country, language, currency)
    words = _choose_words(rng, lexicon, seller.country)
    included = kind == "till"
    rates = [Decimal(0)] if abroad else [Decimal(rate) for rate in place["rates"]]
    if seller.country in _ONE_RATE:
        rates = [rng.choice(rates)] if rates else rates
    two_rates = len(rates) > 1 and rng.random() < 0.22
    items = _items(rng, lexicon, kind, notation, rates if two_rates else rates[:1], language)
    goods_total = sum((item.amount for item in items), Decimal(0))
    plain = not two_rates and not included and kind != "plain"
    discount = (
        _round(goods_total * rng.choice((2, 3, 5)) / 100, notation) if plain and rng.random() < 0.2 else Decimal(0)
    )
    shipping = (
        _price(rng, 9, 260, notation)
        if plain and kind in {"goods", "export"} and rng.random() < 0.35
        else Decimal(0)
    )
    net, taxes = _taxes(items, goods_total - discount + shipping, notation, included=included)
    tax = sum((line.amount for line in taxes), Decimal(0))
    total = net + tax
    date = dt.date(2025, 1, 2) + dt.timedelta(days=rng.randrange(700))
    days = rng.choice((10, 14, 15, 30, 30, 45, 60))
    return Invoice(
        language=language,
        words=words,
        notation=notation,
        seller=seller,
        buyer=buyer,
        number=_fill(rng, rng.choice(_CHINESE_NUMBER_FORMS if language == "zh" else _NUMBER_FORMS), date),
        date=date,
        due=date + dt.timedelta(days=days) if rng.random() < 0.72 or kind == "utility" else None,
        days=days,
        items=items,
        goods_total=goods_total,
        discount=discount,
        shipping=shipping,
        net=net,
        taxes=taxes,
        tax=tax,
        total=total,
        prices_include_tax=included,
        deposit=_round(total * rng.choice((20, 30, 50)) / 100, notation)
        if kind not in {"till", "plain"} and rng.random() < 0.07
        else Decimal(0),
        prior=_price(rng, 40, 300, notation) if kind == "utility" and rng.random() < 0.6 else Decimal(0),
        incoterm=_incoterm(rng)
        if kind in {"export", "freight"} or (kind == "goods" and rng.random() < 0.25)
        else "",
        origin=lexicon["country_names"].get(seller.country, seller.country_name),
        account=_account(rng, place, seller.country),
        order=_fill(rng, rng.choice(("45########", "PO-#####", "B-{yyyy}-###", "######", "4500###")), date),
        order_date=date - dt.timedelta(days=rng.randrange(9, 70)),
        delivery_date=date - dt.timedelta(days=rng.randrange(1, 8)),
        delivery_note=_fill(rng, rng.choice(("LS-######", "80######", "DN####")), date),
        customer=_fill(rng, rng.choice(("#####", "C-####", "10####", "K#####")), date),
        project=_fill(rng, rng.choice(("P-{yy}-###", "##-####", "OB ###")), date),
        person=rng.choice(_PEOPLE),
        weight=f"{notation.number(Decimal(rng.randrange(40, 9000)), 0)} kg",
    )


def _buyer_key(rng: Random, key: str, language: str, *, abroad: bool) -> str:
    if not abroad:
        return key
    if language == "zh":
        return rng.choice(("US", "DE", "GB", "AU"))
    return rng.choice([name for name in _FOREIGN_BUYERS if name[:2] != key[:2]])


def _party(rng: Random, key: str, language: str, besides: str = "") -> Party:
    place = countries()[key]
    code = place.get("code", key)
    name = rng.choice([seller for seller in place["sellers"] if seller != besides])
    brand = (
        "".join(letter for letter in name.lower().split()[0] if letter.isascii() and letter.isalpha()) or "gongsi"
    )
    ending = {"GB": "co.uk", "US": "com", "AU": "com.au", "CN": "com.cn", "JP": "co.jp", "SG": "com.sg"}
    return Party(
        name=name,
        street=rng.choice(place["streets"]),
        city=rng.choice(place["cities"]),
        country=code,
        country_name=wording(language)["country_names"][code],
        vat=_digits(rng, place["vat"]),
        phone=_digits(rng, place["phone"]),
        web=f"{brand}.{ending.get(code, code.lower())}",
        legal=tuple(_digits(rng, line) for line in place["legal"]),
    )


def _notation(
    rng: Random, place: dict[str, Any], lexicon: dict[str, Any], country: str, language: str, currency: str
) -> Notation:
    return choose_notation(
        rng,
        country=country,
        language=language,
        currency=currency,
        marks=rng.choice(place["notations"]),
        dates=rng.choice(place["dates"]),
        months=lexicon["month"],
        short_months=lexicon["mon"],
    )


def _choose_words(rng: Random, lexicon: dict[str, Any], country: str) -> dict[str, str]:
    skipped = {"goods", "services", "utilities", "freight", "groceries", "units", "month", "mon", "country_names"}
    words = {key: rng.choice(values) for key, values in lexicon.items() if key not in skipped}
    words["terms_short"] = lexicon["terms"][0]
    if country == "CH" and lexicon is wording("de"):
        words |= {"tax": "MwSt. {rate} %", "tax_total": "Summe MwSt.", "vat_id": "MWST-Nr.", "rate": "MwSt. %"}
    if country in _TAX_NAMES and lexicon is wording("en"):
        words["tax"] = rng.choice(_TAX_NAMES[country])
        name = words["tax"].partition("{")[0].strip(" (")
        words |= {
            "tax_total": f"Total {name.lower() if country == 'US' else name}",
            "vat_id": "Tax ID",
            "rate": "Tax %",
        }
        words["buyer_vat"] = "Customer tax ID"
        if "VAT" in words["net"]:
            words["net"] = "Subtotal"
    return words


def _items(
    rng: Random, lexicon: dict[str, Any], kind: str, notation: Notation, rates: list[Decimal], language: str
) -> tuple[Item, ...]:
    source = {"services": "services", "utility": "utilities", "freight": "freight", "till": "groceries"}.get(
        kind, "goods"
    )
    count = rng.choice((1, 2, 3, 3, 4, 5, 6, 8)) if kind != "freight" else rng.randint(4, 6)
    chosen = rng.sample(lexicon[source], min(count, len(lexicon[source])))
    if len(rates) > 1 and len(chosen) < 2:
        rates = rates[:1]
    hs_form = rng.choice(("{0}{1}{2}", "{0}.{1}", "{0}.{1}.{2}", "{0} {1} {2}", "{0}{1}"))
    origin = rng.choice(("DE", "CN", "IT", "NL", "FR", "ES", "US", "JP"))
    return tuple(
        _item(rng, entry, kind, notation, rates[index % len(rates)], lexicon, hs_form, origin, language)
        for index, entry in enumerate(chosen)
    )


def _item(
    rng: Random,
    entry: Any,
    kind: str,
    notation: Notation,
    rate: Decimal,
    lexicon: dict[str, Any],
    hs_form: str,
    origin: str,
    language: str,
) -> Item:
    hs = ""
    low, high = {"services": (60, 900), "utility": (8, 160), "freight": (35, 1400), "till": (1, 14)}.get(
        kind, (5, 500)
    )
    quantity = Decimal(rng.choice((1, 1, 1, 2, 3, 8, rng.randrange(1, 40)))) if kind != "freight" else Decimal(1)
    description, unit = entry, lexicon["units"][-1] if kind == "services" else lexicon["units"][0]
    if isinstance(entry, list):
        description, hs, unit, low, high = entry
        quantity = Decimal(rng.choice((2, 4, 10, 24, 50, 120, 250, 1000, rng.randrange(1, 90))))
        if unit in {"kg", "m", "千克", "米"} and rng.random() < 0.4:
            quantity += Decimal(rng.randrange(1, 20)) * 5 / 100
    elif language == "zh":
        low, high = low * 6, high * 6
    if kind == "till":
        quantity = Decimal(rng.choice((1, 1, 1, 2, 3)))
    price = _price(rng, low, high, notation)
    eight = hs + rng.choice(("10", "90", "80", "20")) if hs else ""
    digits = eight if "{2}" in hs_form else hs
    return Item(
        code=_digits(rng, rng.choice(("##-####", "@@####", "1000####"))),
        description=description,
        quantity=quantity,
        unit=unit,
        price=price,
        rate=rate,
        amount=_round(price * quantity, notation),
        hs=digits,
        hs_printed=hs_form.format(digits[:4], digits[4:6], digits[6:]) if digits else "",
        origin=origin,
    )


def _taxes(
    items: tuple[Item, ...], net: Decimal, notation: Notation, *, included: bool
) -> tuple[Decimal, tuple[TaxLine, ...]]:
    rates = sorted({item.rate for item in items}, reverse=True)
    if rates == [Decimal(0)]:
        return net, ()
    lines = []
    for rate in rates:
        base = net if len(rates) == 1 else sum((item.amount for item in items if item.rate == rate), Decimal(0))
        amount = _round(base * rate / (100 + rate if included else 100), notation)
        lines.append(TaxLine(rate=rate, base=base - amount if included else base, amount=amount))
    return sum((line.base for line in lines), Decimal(0)), tuple(lines)


def _account(rng: Random, place: dict[str, Any], country: str) -> Account:
    bank, letters, where = rng.choice(place["banks"])
    iban = make_iban(rng, country, letters) or ""
    grouped = " ".join(iban[start : start + 4] for start in range(0, len(iban), 4))
    return Account(
        bank=bank,
        bic=make_bic(rng, country, letters, where),
        iban=iban,
        iban_printed=grouped if rng.random() < 0.85 else iban,
        number=_digits(rng, rng.choice(("##########", "### ### ####", "####-#######"))),
    )


def _incoterm(rng: Random) -> str:
    term = rng.choice(_INCOTERMS)
    return f"{term} {rng.choice(_PLACES['sea' if term in _SEA_TERMS else 'land'])}"


def _price(rng: Random, low: float, high: float, notation: Notation) -> Decimal:
    value = Decimal(str(round(rng.uniform(low, high), 2)))
    if notation.currency in {"JPY"}:
        return (value * 100).quantize(Decimal(1))
    if notation.currency in {"SEK", "DKK", "MXN"}:
        value *= 8
    return rng.choice((value, value, value.quantize(Decimal(1)))) or Decimal(1)


def _round(value: Decimal, notation: Notation) -> Decimal:
    return value.quantize(_CENT if notation.places else Decimal(1), rounding=ROUND_HALF_UP)


def _digits(rng: Random, form: str) -> str:
    letters = "ABCDEFGHJKLMNPRSTUVWXYZ"
    return "".join(
        str(rng.randrange(1 if start == 0 else 0, 10))
        if mark == "#"
        else rng.choice(letters)
        if mark == "@"
        else mark
        for start, mark in enumerate(form)
    )


def _fill(rng: Random, form: str, day: dt.date) -> str:
    return _digits(
        rng, form.format(yyyy=day.year, yy=f"{day.year % 100:02}", mm=f"{day.month:02}", dd=f"{day.day:02}")
    )

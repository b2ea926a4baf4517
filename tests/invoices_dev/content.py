"""Random invoices as plain values: what is printed, how it is written, and what is true."""

import datetime as dt
import random
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from tests.invoices_dev.wording import COMPANIES, GOODS, LABELS, MONTHS, PLACES

CENT = Decimal("0.01")


@dataclass
class Invoice:
    """One invoice: wording chosen, values formatted for print, and the truth about it."""

    lang: str
    label: dict[str, str]
    supplier: str
    supplier_address: list[str]
    buyer: str
    buyer_address: list[str]
    number: str
    dates: dict[str, str]
    ids: dict[str, str]
    items: list[tuple[str, str, str, str]]
    totals: list[tuple[str, str]]
    currency_mark: str
    iban: str
    hs_code: str | None
    incoterm: str | None
    terms: str
    letter: list[str]
    slogan: str
    title: str
    truth: dict[str, str] = field(default_factory=dict)


def cents(value: Decimal, places: int = 2) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


NUMBER_STYLES = {
    "point": (",", "."),
    "comma": (".", ","),
    "space": (" ", ","),
    "swiss": ("'", "."),
    "swiss2": ("’", "."),
    "plain_point": ("", "."),
    "plain_comma": ("", ","),
    "spacepoint": (" ", "."),
}


def written(value: Decimal, style: str, places: int) -> str:
    group, point = NUMBER_STYLES[style]
    sign = "-" if value < 0 else ""
    whole, _, part = f"{abs(value):.{places}f}".partition(".")
    chunks = []
    while len(whole) > 3:
        chunks.insert(0, whole[-3:])
        whole = whole[:-3]
    chunks.insert(0, whole)
    return sign + group.join(chunks) + (point + part if places else "")


def date_writer(rng: random.Random, lang: str, country: str):
    options = {
        "en": [
            "%d/%m/%Y",
            "%d %B %Y",
            "%d %b %Y",
            "%Y-%m-%d",
            "%B %d, %Y",
            "%b %d, %Y",
            "%d-%b-%Y",
            "%d.%m.%Y",
            "%d/%m/%y",
            "%dth %B %Y",
        ],
        "de": ["%d.%m.%Y", "%d.%m.%y", "%d. %B %Y", "%Y-%m-%d"],
        "fr": ["%d/%m/%Y", "%d %B %Y", "%d.%m.%Y", "%d/%m/%y", "%Y-%m-%d", "%d-%m-%Y"],
        "nl": ["%d-%m-%Y", "%d %B %Y", "%d/%m/%Y", "%Y-%m-%d", "%d-%m-%y"],
        "es": ["%d/%m/%Y", "%d de %B de %Y", "%d-%m-%Y", "%Y-%m-%d", "%d %b %Y"],
        "zh": ["%Y年%m月%d日", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y年%-m月%-d日", "%Y年 %m月 %d日"],
    }[lang]
    if lang == "en" and country in {"USA", ""}:
        options = ["%m/%d/%Y", "%B %d, %Y", "%b %d, %Y", "%-m/%-d/%Y", "%m-%d-%Y", "%Y-%m-%d", "%d %b %Y"]
    pattern = rng.choice(options)

    def write(day: dt.date) -> str:
        month = MONTHS[lang][day.month - 1] if MONTHS[lang] else ""
        short = month[:3] + ("." if lang in {"fr", "es"} else "")
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day not in (11, 12, 13) else 0, "th")
        text = pattern.replace("%B", month).replace("%b", short).replace("%dth", f"{day.day}{suffix}")
        return day.strftime(text)

    return write


def currency_for(rng: random.Random, lang: str, country: str) -> tuple[str, str]:
    home = {
        "United Kingdom": "GBP",
        "USA": "USD",
        "Canada": "CAD",
        "Australia": "AUD",
        "Schweiz": "CHF",
        "Suisse": "CHF",
        "México": "MXN",
    }.get(country)
    if lang == "zh":
        home = "CNY"
    if lang == "en" and country == "":
        home = "USD"
    code = home or "EUR"
    if rng.random() < 0.22:
        code = rng.choice(["EUR", "USD", "GBP", "CHF", "SEK", "JPY", "PLN", "CNY", "DKK", "SGD", "HKD", "AUD"])
    marks = {
        "EUR": ["€", "EUR", "€"],
        "USD": ["$", "USD", "US$"],
        "GBP": ["£", "GBP"],
        "CHF": ["CHF", "Fr."],
        "CNY": ["¥", "￥", "CNY", "RMB", "元"],
        "JPY": ["JPY", "¥"],
        "CAD": ["CAD", "C$", "$"],
        "AUD": ["AUD", "A$", "$"],
        "MXN": ["MXN", "$"],
        "SEK": ["SEK", "kr"],
        "DKK": ["DKK"],
        "PLN": ["PLN", "zł"],
        "SGD": ["SGD", "S$"],
        "HKD": ["HKD", "HK$"],
    }
    mark = rng.choice(marks[code])
    if mark in {"$", "kr"} and code != home:
        mark = code
    if mark == "¥" and code == "JPY" and lang != "zh":
        mark = "JPY"
    if mark in {"￥", "元"} and lang != "zh":
        mark = "CNY"
    if code == "JPY" and lang == "zh":
        mark = "JPY"
    return code, mark


def iban(rng: random.Random, country: str) -> str:
    sizes = {"DE": 18, "FR": 23, "NL": 14, "ES": 20, "GB": 18, "CH": 17, "AT": 16, "BE": 12}
    code = country if country in sizes else "DE"
    body = "".join(rng.choice("0123456789") for _ in range(sizes[code]))
    if code in {"NL", "GB"}:
        body = "".join(rng.choice("ABDIKNRU") for _ in range(4)) + body[4:]
    digits = "".join(str(int(char, 36)) for char in body + code + "00")
    text = f"{code}{98 - int(digits) % 97:02d}{body}"
    return " ".join(text[i : i + 4] for i in range(0, len(text), 4)) if rng.random() < 0.8 else text


def number_text(rng: random.Random, lang: str, day: dt.date) -> str:
    n = rng.randint(1, 99999)
    if lang == "zh" and rng.random() < 0.5:
        return "".join(rng.choice("0123456789") for _ in range(rng.choice([8, 20])))
    return rng.choice(
        [
            f"INV-{day.year}-{n:04d}",
            f"{n:05d}",
            f"{day.year}{n:05d}",
            f"RE-{n}",
            f"{day.year}/{n % 1000:03d}",
            f"F{day.year % 100}-{n:05d}",
            f"{rng.choice('ABCKLRSTVX')}{rng.choice('ABCKLRSTVX')}{n:06d}",
            f"{day.year}-{day.month:02d}-{n % 1000:03d}",
            f"{n:05d}-{rng.choice('AB')}",
            f"FA{n:06d}",
            f"SI-{n:05d}",
            f"{rng.randint(1000000, 99999999)}",
            f"{n % 9000 + 1000}.{day.year}",
        ]
    )


_STYLES = {
    "en": ["point", "point", "plain_point"],
    "de": ["comma", "comma", "plain_comma"],
    "fr": ["space", "space", "comma", "plain_comma"],
    "nl": ["comma"],
    "es": ["comma", "comma", "plain_comma"],
    "zh": ["plain_point", "point"],
}
_RATES = {
    "en": [20, 8.25, 5, 10],
    "de": [19, 7, 8.1],
    "fr": [20, 5.5, 10],
    "nl": [21, 9],
    "es": [21, 10],
    "zh": [13, 6, 9],
}
_OUTSTANDING = {"Balance Due", "Amount due", "TOTAL DUE", "Zu zahlen", "Zahlbetrag", "Net à payer", "À payer"} | {
    "Total à payer",
    "Te betalen",
    "Te voldoen",
    "Total a pagar",
    "应付总额",
    "Totaal te voldoen",
    "Total payable",
    "Amount payable",
}
Money = list[tuple[str, Decimal]]


@dataclass
class Writer:
    """How one invoice writes its amounts."""

    style: str
    places: int
    mark: str
    mark_style: str

    def number(self, value: Decimal) -> str:
        return written(value, self.style, self.places)

    def rate(self, rate: float) -> str:
        return f"{rate}".replace(".", NUMBER_STYLES[self.style][1])

    def marked(self, value: Decimal, is_total: bool) -> str:
        text = self.number(value)
        if self.mark_style == "none" or (self.mark_style == "total_only" and not is_total):
            return text
        if self.mark in {"元", "zł", "kr"} or self.mark_style == "after":
            return f"{text}{self.mark}" if self.mark == "元" else f"{text} {self.mark}"
        joint = "" if self.mark_style == "before" and not self.mark[-1].isalpha() else " "
        return f"-{self.mark}{joint}{text[1:]}" if text.startswith("-") else f"{self.mark}{joint}{text}"


def labels_for(rng: random.Random, lang: str) -> dict[str, str]:
    label = {key: rng.choice(words) for key, words in LABELS[lang].items()}
    if lang != "en" and rng.random() < 0.12:
        # Export invoices say things twice.
        for key in ("number", "date", "due", "total", "net"):
            label[key] = f"{label[key]} / {rng.choice(LABELS['en'][key])}"
    return label


def goods_rows(rng: random.Random, lang: str, writer: Writer) -> tuple[list[tuple[str, str, str, str]], Decimal]:
    scale = rng.choice([1, 1, 10, 60])
    rows, net = [], Decimal(0)
    for name in rng.sample(GOODS[lang], rng.randint(1, min(6, len(GOODS[lang])))):
        quantity = rng.choice([1, 2, 3, 4, 5, 8, 10, 12, 25, 100]) if scale < 60 else rng.randint(1, 5)
        price = cents(
            Decimal(rng.randint(150, 25000)) / 100 * scale * (1 if writer.places else 100), writer.places
        )
        net += price * quantity
        rows.append((name, str(quantity), writer.number(price), writer.number(price * quantity)))
    return rows, net


def adjustments(rng: random.Random, label: dict[str, str], net: Decimal, places: int) -> Money:
    found: Money = []
    if rng.random() < 0.2:
        found.append((label["discount"], -cents(net * Decimal(rng.choice([2, 5, 10])) / 100, places)))
    if rng.random() < 0.25:
        found.append((label["shipping"], cents(Decimal(rng.randint(400, 9000)) / (100 if places else 1), places)))
    return found


def taxes(rng: random.Random, lang: str, word: str, base: Decimal, writer: Writer) -> Money:
    rates, kind = _RATES[lang], rng.random()
    if kind < 0.72:
        rate = rng.choice(rates)
        shown = writer.rate(rate)
        words = rng.choice([f"{word} {shown}%", f"{word} ({shown} %)", f"{shown}% {word}", word])
        return [(words, cents(base * Decimal(str(rate)) / 100, writer.places))]
    if kind < 0.87:
        first = cents(base * Decimal("0.6"), writer.places)
        parts = ((rates[0], first), (rates[1], base - first))
        return [
            (f"{word} {writer.rate(rate)}%", cents(part * Decimal(str(rate)) / 100, writer.places))
            for rate, part in parts
        ]
    return []


def sums(
    rng: random.Random, lang: str, label: dict[str, str], net: Decimal, writer: Writer
) -> tuple[Money, Decimal, Decimal]:
    """The rows of the sums block, the total and the tax."""
    extra = adjustments(rng, label, net, writer.places)
    base = net + sum((value for _, value in extra), Decimal(0))
    tax_rows = taxes(rng, lang, label["tax"], base, writer)
    tax = sum((value for _, value in tax_rows), Decimal(0))
    first = [(label["net"], net)] if extra or tax_rows or rng.random() < 0.5 else []
    rows = [*first, *extra, *tax_rows, (label["total"], base + tax)]
    if rng.random() < 0.08 and label["total"] not in _OUTSTANDING:
        rows.append((label["paid"], Decimal(0)))
    return rows, base + tax, tax


def identifiers(rng: random.Random, country: str) -> dict[str, str]:
    return {
        "order": rng.choice([f"PO-{rng.randint(1000, 99999)}", f"{rng.randint(100000, 9999999)}"]),
        "customer": f"{rng.choice(['', 'K', 'C-'])}{rng.randint(100, 99999)}",
        "note": f"LS{rng.randint(1000, 99999)}",
        "vat": f"{country or '9131'}{rng.randint(100000000, 999999999)}",
        "tel": f"+{rng.randint(30, 49)} {rng.randint(20, 999)} {rng.randint(100000, 9999999)}",
    }


def country_of(lang: str, place: tuple[str, str, str]) -> str:
    named = {"Schweiz": "CH", "Suisse": "CH", "Österreich": "AT", "Belgique": "BE", "België": "BE"}
    return named.get(place[2], {"de": "DE", "fr": "FR", "nl": "NL", "es": "ES", "en": "GB", "zh": ""}[lang])


def make_invoice(rng: random.Random, lang: str) -> Invoice:
    label, place, other = labels_for(rng, lang), rng.choice(PLACES[lang]), rng.choice(PLACES[lang])
    day = dt.date(rng.randint(2019, 2026), rng.randint(1, 12), rng.randint(1, 28))
    due = day + dt.timedelta(days=rng.choice([7, 10, 14, 21, 30, 30, 45, 60]))
    ordered, shipped = day - dt.timedelta(days=rng.randint(5, 40)), day - dt.timedelta(days=rng.randint(0, 4))
    write, country = date_writer(rng, lang, place[2]), country_of(lang, place)
    code, mark = currency_for(rng, lang, place[2])
    swiss = ["swiss", "swiss2", "plain_point", "spacepoint"]
    writer = Writer(
        style=rng.choice(swiss if country == "CH" else _STYLES[lang]),
        places=0 if code == "JPY" else 2,
        mark=mark,
        mark_style=rng.choice(["before", "before_space", "after", "total_only", "none"]),
    )
    rows, net = goods_rows(rng, lang, writer)
    money, total, tax = sums(rng, lang, label, net, writer)
    sign = -1 if rng.random() < 0.03 else 1
    totals = [
        (name, writer.marked(value * sign, name in {label["total"], label["paid"]})) for name, value in money
    ]
    number = number_text(rng, lang, day)
    supplier, buyer = rng.sample(COMPANIES[lang], 2)
    return Invoice(
        lang=lang,
        label=label,
        supplier=supplier,
        supplier_address=[part for part in place if part],
        buyer=buyer,
        buyer_address=[part for part in other[:2] if part],
        number=number,
        dates={"date": write(day), "due": write(due), "delivery": write(shipped), "orderdate": write(ordered)},
        ids=identifiers(rng, country),
        items=rows,
        totals=totals,
        currency_mark=rng.choice([code, code, f"{code} ({mark})"]) if writer.mark_style == "none" else "",
        iban=iban(rng, country) if country else "",
        hs_code=rng.choice(["850760", "84131100", "7318.15", "9403.30.00"]) if rng.random() < 0.2 else None,
        incoterm=rng.choice([None, None, None, None, "FOB Shanghai", "CIF Rotterdam", "DAP Hamburg", "EXW Lyon"]),
        terms=label["termtext"],
        letter=[line.format(d=write(ordered), e=write(shipped)) for line in LABELS[lang]["letter"]],
        slogan=label["slogan"],
        title=label["title"],
        truth={
            "number": number,
            "date": day.isoformat(),
            "due_date": due.isoformat(),
            "currency": code,
            "total": f"{total * sign:.{writer.places}f}",
            "tax": f"{tax * sign:.{writer.places}f}",
            "supplier": supplier,
            "lang": lang,
        },
    )

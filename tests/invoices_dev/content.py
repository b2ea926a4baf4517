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


def make_invoice(rng: random.Random, lang: str) -> Invoice:
    label = {key: rng.choice(words) for key, words in LABELS[lang].items()}
    if lang != "en" and rng.random() < 0.12:
        # Export invoices say things twice.
        for key in ("number", "date", "due", "total", "net"):
            label[key] = f"{label[key]} / {rng.choice(LABELS['en'][key])}"
    place = rng.choice(PLACES[lang])
    day = dt.date(rng.randint(2019, 2026), rng.randint(1, 12), rng.randint(1, 28))
    due = day + dt.timedelta(days=rng.choice([7, 10, 14, 21, 30, 30, 45, 60]))
    ordered, shipped = day - dt.timedelta(days=rng.randint(5, 40)), day - dt.timedelta(days=rng.randint(0, 4))
    write = date_writer(rng, lang, place[2])
    code, mark = currency_for(rng, lang, place[2])
    places = 0 if code == "JPY" else 2
    swiss = place[2] in {"Schweiz", "Suisse"}
    styles = {
        "en": ["point", "point", "plain_point"],
        "de": ["comma", "comma", "plain_comma"],
        "fr": ["space", "space", "comma", "plain_comma"],
        "nl": ["comma"],
        "es": ["comma", "comma", "plain_comma"],
        "zh": ["plain_point", "point"],
    }[lang]
    style = rng.choice(["swiss", "swiss2", "plain_point", "spacepoint"] if swiss else styles)
    scale = rng.choice([1, 1, 10, 60]) * (100 if code == "JPY" else 1)
    rows, net = [], Decimal(0)
    for name in rng.sample(GOODS[lang], rng.randint(1, min(6, len(GOODS[lang])))):
        quantity = rng.choice([1, 2, 3, 4, 5, 8, 10, 12, 25, 100]) if scale < 60 else rng.randint(1, 5)
        price = cents(Decimal(rng.randint(150, 25000)) / 100 * scale, places)
        amount = cents(price * quantity, places)
        net += amount
        rows.append((name, str(quantity), written(price, style, places), written(amount, style, places)))
    negative = rng.random() < 0.03
    base = net
    summary: list[tuple[str, Decimal]] = []
    if rng.random() < 0.2:
        cut = cents(net * Decimal(rng.choice([2, 5, 10])) / 100, places)
        summary.append((label["discount"], -cut))
        base -= cut
    if rng.random() < 0.25:
        freight = cents(Decimal(rng.randint(400, 9000)) / 100 * (100 if code == "JPY" else 1), places)
        summary.append((label["shipping"], freight))
        base += freight
    rates = {
        "en": [20, 8.25, 5, 10],
        "de": [19, 7, 8.1],
        "fr": [20, 5.5, 10],
        "nl": [21, 9],
        "es": [21, 10],
        "zh": [13, 6, 9],
    }[lang]
    kind = rng.random()
    tax_rows: list[tuple[str, Decimal]] = []
    rate_text = lambda rate: f"{rate}".replace(".", NUMBER_STYLES[style][1])  # noqa: E731
    if kind < 0.72:
        rate = rng.choice(rates)
        tax = cents(base * Decimal(str(rate)) / 100, places)
        words = rng.choice(
            [
                f"{label['tax']} {rate_text(rate)}%",
                f"{label['tax']} ({rate_text(rate)} %)",
                f"{rate_text(rate)}% {label['tax']}",
                label["tax"],
            ]
        )
        tax_rows = [(words, tax)]
    elif kind < 0.87:
        first = cents(base * Decimal("0.6"), places)
        for rate, part in ((rates[0], first), (rates[1], base - first)):
            tax_rows.append((f"{label['tax']} {rate_text(rate)}%", cents(part * Decimal(str(rate)) / 100, places)))
    tax_total = sum((value for _, value in tax_rows), Decimal(0))
    total = base + tax_total
    net_first = [(label["net"], net)] if summary or tax_rows or rng.random() < 0.5 else []
    sign = -1 if negative else 1
    money = [*net_first, *summary, *tax_rows, (label["total"], total)]
    if rng.random() < 0.08 and label["total"] not in {
        "Balance Due",
        "Amount due",
        "TOTAL DUE",
        "Zu zahlen",
        "Zahlbetrag",
        "Net à payer",
        "À payer",
        "Total à payer",
        "Te betalen",
        "Te voldoen",
        "Total a pagar",
        "应付总额",
        "Totaal te voldoen",
        "Total payable",
        "Amount payable",
    }:
        money.append((label["paid"], Decimal(0)))
    mark_style = rng.choice(["before", "before_space", "after", "total_only", "none"])
    labelled = mark_style == "none"

    def with_mark(text: str, is_total: bool) -> str:
        if mark_style == "none" or (mark_style == "total_only" and not is_total):
            return text
        if mark in {"元", "zł", "kr"} or mark_style == "after":
            return f"{text} {mark}" if mark != "元" else f"{text}{mark}"
        joint = "" if mark_style == "before" and not mark[-1].isalpha() else " "
        return f"-{mark}{joint}{text[1:]}" if text.startswith("-") else f"{mark}{joint}{text}"

    totals = [
        (name, with_mark(written(value * sign, style, places), i == len(money) - 1 or name == label["total"]))
        for i, (name, value) in enumerate(money)
    ]
    number = number_text(rng, lang, day)
    country = {"de": "DE", "fr": "FR", "nl": "NL", "es": "ES", "en": "GB", "zh": ""}[lang]
    country = "CH" if swiss else {"Österreich": "AT", "Belgique": "BE", "België": "BE"}.get(place[2], country)
    other = rng.choice(PLACES[lang])
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
        ids={
            "order": rng.choice([f"PO-{rng.randint(1000, 99999)}", f"{rng.randint(100000, 9999999)}"]),
            "customer": f"{rng.choice(['', 'K', 'C-'])}{rng.randint(100, 99999)}",
            "note": f"LS{rng.randint(1000, 99999)}",
            "vat": f"{country or '9131'}{rng.randint(100000000, 999999999)}",
            "tel": f"+{rng.randint(30, 49)} {rng.randint(20, 999)} {rng.randint(100000, 9999999)}",
        },
        items=rows,
        totals=totals,
        currency_mark=(rng.choice([code, code, f"{code} ({mark})"]) if labelled else ""),
        iban=iban(rng, country) if country not in {"", "US"} else "",
        hs_code=rng.choice(["850760", "84131100", "7318.15", "9403.30.00"]) if rng.random() < 0.2 else None,
        incoterm=rng.choice(["FOB Shanghai", "CIF Rotterdam", "DAP Hamburg", "EXW Lyon"])
        if rng.random() < 0.2
        else None,
        terms=label["termtext"],
        letter=[line.format(d=write(ordered), e=write(shipped)) for line in LABELS[lang]["letter"]],
        slogan=label["slogan"],
        title=label["title"],
        truth={
            "number": number,
            "date": day.isoformat(),
            "due_date": due.isoformat(),
            "currency": code,
            "total": f"{total * sign:.{places}f}",
            "tax": f"{tax_total * sign:.{places}f}",
            "supplier": supplier,
            "lang": lang,
            "rows": str(len(rows)),
        },
    )

"""The sample sales database: made up from a seed, the same every time, interesting in every quarter.

Every city's sales of a quarter hit a planned amount to the cent, so that each quarter has cities that fall by far
more than 15 %, by 15.1 %, by 14.9 %, in every second quarter by exactly 15 %, and cities that rise.
"""

import csv
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from tools.sql.loading import TableSource, write_database
from tools.sql.values import Value

FIRST_DAY = date(2024, 1, 1)
END_DAY = date(2026, 10, 1)
"""Orders are from FIRST_DAY up to, but without, END_DAY: eleven whole quarters."""

DEFAULT_SEED = 7
SEMANTIC_YAML = Path(__file__).with_name("semantic.yaml")

_SEEDS = Path(__file__).with_name("data")
_VERSION = 1  # raise it whenever the rows change, so that an old file is not taken for a new one
_MONTHS_IN_QUARTER = 3
_CENTS_PER_WEIGHT = 80_000
# Targets are multiples of 20 yuan, so that 85 % of one is a whole number of cents.
_TARGET_STEP_CENTS = 2_000
_PLANTED_REGIONS = ("east_china", "south_china")
_CHANNELS = ("online", "store", "partner")
_CHANNEL_WEIGHTS = (5, 3, 2)
_TWENTIETHS_OFF = (0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4)
_RETURNED_SHARE = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class _City:
    code: str
    region: str
    weight: int
    opened_on: date
    closed_on: date | None
    samples_until: date | None

    def sells_on(self, day: date) -> bool:
        return self.opened_on <= day and (self.closed_on is None or day < self.closed_on)

    def only_gives_samples(self, day: date) -> bool:
        return self.samples_until is not None and day < self.samples_until


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    product: str
    quantity: int
    price_cents: int
    twentieths_off: int
    returned: int

    @property
    def amount_cents(self) -> int:
        return self.quantity * self.price_cents * (20 - self.twentieths_off) // 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    day: date
    city: str
    channel: str
    lines: tuple[_Line, ...]


def build(path: Path, seed: int = DEFAULT_SEED) -> None:
    """Write the database to `path`, replacing what is there; takes one to two seconds.

    Tables: `region`, `city`, `product`, `channel`, and `order_line` with one row per line of an order. Amounts are
    in yuan: quantity * unit_price * (1 - discount), always whole cents.
    """
    cities = [_city(row) for row in _read_seed("city")]
    rows = _order_lines(cities, random.Random(seed))  # noqa: S311 - sample data, not a secret
    write_database(path, [*_dimension_tables(), _order_line_table(rows)])


def ensure(folder: Path, seed: int = DEFAULT_SEED) -> Path:
    """The path of the database in `folder`, built there if it is not yet."""
    path = folder / f"sales-v{_VERSION}-seed{seed}.duckdb"
    if not path.is_file():
        build(path, seed)
    return path


def _read_seed(name: str) -> list[dict[str, str]]:
    with (_SEEDS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _city(row: dict[str, str]) -> _City:
    return _City(
        code=row["city_code"],
        region=row["region_code"],
        weight=int(row["weight"]),
        opened_on=date.fromisoformat(row["opened_on"]),
        closed_on=date.fromisoformat(row["closed_on"]) if row["closed_on"] else None,
        samples_until=date.fromisoformat(row["samples_until"]) if row["samples_until"] else None,
    )


def _dimension_tables() -> list[TableSource]:
    text = "VARCHAR"
    names = [("name_zh", text), ("name_en", text)]
    layouts = {
        "region": [("region_code", text), *names],
        "city": [("city_code", text), *names, ("region_code", text), ("opened_on", "DATE")],
        "product": [("product_code", text), *names, ("category", text), ("list_price", "DECIMAL(10,2)")],
        "channel": [("channel_code", text), *names],
    }
    return [
        TableSource(
            name=name,
            columns=columns,
            key=[columns[0][0]],
            rows=[[row[column] for column, _ in columns] for row in _read_seed(name)],
        )
        for name, columns in layouts.items()
    ]


def _order_line_table(rows: Iterator[Sequence[Value]]) -> TableSource:
    return TableSource(
        name="order_line",
        columns=[
            ("order_id", "BIGINT"),
            ("line_number", "INTEGER"),
            ("ordered_on", "DATE"),
            ("city_code", "VARCHAR"),
            ("channel_code", "VARCHAR"),
            ("product_code", "VARCHAR"),
            ("quantity", "INTEGER"),
            ("unit_price", "DECIMAL(10,2)"),
            ("discount", "DECIMAL(4,2)"),
            ("returned_quantity", "INTEGER"),
        ],
        key=["order_id", "line_number"],
        rows=rows,
    )


def _order_lines(cities: Sequence[_City], rng: random.Random) -> Iterator[Sequence[Value]]:
    products = [(row["product_code"], int(Decimal(row["list_price"]) * 100)) for row in _read_seed("product")]
    goods = [product for product in products if product[0] != "field_service"]
    orders: list[_Order] = []
    for first_day, targets in _plan(cities, rng):
        for city in cities:
            if city.only_gives_samples(first_day) and city.sells_on(first_day):
                orders += [_samples(city, first_day, goods, rng) for _ in range(12)]
            elif city.code in targets:
                orders += _orders(city, first_day, targets[city.code], goods, rng)
    orders.sort(key=lambda order: (order.day, order.city))
    for order_id, order in enumerate(orders, start=100_001):
        for number, line in enumerate(order.lines, start=1):
            yield (
                order_id,
                number,
                order.day,
                order.city,
                order.channel,
                line.product,
                line.quantity,
                Decimal(line.price_cents) / 100,
                Decimal(line.twentieths_off) / 20,
                line.returned,
            )


def _plan(cities: Sequence[_City], rng: random.Random) -> Iterator[tuple[date, dict[str, int]]]:
    """For each quarter, its first day and what every city is to sell in it, in cents."""
    before: dict[str, int] = {}
    exact_before = ""
    day = FIRST_DAY
    number = 0
    while day < END_DAY:
        selling = [city for city in cities if city.sells_on(day) and not city.only_gives_samples(day)]
        planted = _planted_ratios([c for c in selling if c.code in before and c.code != exact_before], number, rng)
        exact_before = next((code for code, ratio in planted.items() if ratio == _EXACTLY_15_DOWN), "")
        targets = {}
        for city in selling:
            usual = city.weight * _CENTS_PER_WEIGHT
            ratio = planted.get(city.code) or _ordinary_ratio(usual, before.get(city.code, usual), rng)
            amount = before.get(city.code, usual) * ratio
            step = 1 if ratio == _EXACTLY_15_DOWN else _TARGET_STEP_CENTS
            targets[city.code] = round(amount / step) * step
        yield day, targets
        before, day, number = targets, _quarter_end(day), number + 1


_EXACTLY_15_DOWN = Fraction(85, 100)


def _planted_ratios(cities: Sequence[_City], number: int, rng: random.Random) -> dict[str, Fraction]:
    """The changes that make a quarter worth asking about, most of them in the east and the south."""
    east, south = ([city.code for city in cities if city.region == region] for region in _PLANTED_REGIONS)
    elsewhere = [city.code for city in cities if city.region not in _PLANTED_REGIONS]
    if not east:
        return {}
    for codes in (east, south, elsewhere):
        rng.shuffle(codes)
    deep = [east.pop(), south.pop(), rng.choice((east, south)).pop(), elsewhere.pop(), elsewhere.pop()]
    ratios = {code: Fraction(rng.randint(620, 830), 1000) for code in deep}
    here = [*east, *south]
    rng.shuffle(here)
    ratios[here.pop()] = Fraction(849, 1000)
    ratios[here.pop()] = Fraction(851, 1000)
    if number % 2 == 0:
        ratios[here.pop()] = _EXACTLY_15_DOWN
    return ratios


def _ordinary_ratio(usual_cents: int, before_cents: int, rng: random.Random) -> Fraction:
    """A change of -9 % to +35 %: half the way back to what is usual, and some chance."""
    back = (1 + Fraction(usual_cents, before_cents)) / 2
    chance = Fraction(rng.randint(960, 1080), 1000)
    return min(max(back * chance, Fraction(91, 100)), Fraction(135, 100))


def _orders(
    city: _City, first_day: date, target_cents: int, goods: Sequence[tuple[str, int]], rng: random.Random
) -> list[_Order]:
    orders: list[_Order] = []
    left_cents = target_cents
    while True:
        lines = tuple(_line(goods, rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 4))))
        amount_cents = sum(line.amount_cents for line in lines)
        if amount_cents >= left_cents:
            if orders:
                break
            continue
        left_cents -= amount_cents
        orders.append(_order(city, first_day, lines, rng))
    # The last order carries a service line that brings the quarter to its planned amount.
    last = orders.pop()
    service = _Line(product="field_service", quantity=1, price_cents=left_cents, twentieths_off=0, returned=0)
    return [*orders, _Order(day=last.day, city=last.city, channel=last.channel, lines=(*last.lines, service))]


def _samples(city: _City, first_day: date, goods: Sequence[tuple[str, int]], rng: random.Random) -> _Order:
    product, price_cents = rng.choice(goods)
    line = _Line(product=product, quantity=1, price_cents=price_cents, twentieths_off=20, returned=0)
    return _order(city, first_day, (line,), rng)


def _order(city: _City, first_day: date, lines: tuple[_Line, ...], rng: random.Random) -> _Order:
    day = first_day + timedelta(days=rng.randrange((_quarter_end(first_day) - first_day).days))
    [channel] = rng.choices(_CHANNELS, _CHANNEL_WEIGHTS)
    return _Order(day=day, city=city.code, channel=channel, lines=lines)


def _line(goods: Sequence[tuple[str, int]], rng: random.Random) -> _Line:
    product, list_cents = rng.choice(goods)
    quantity = rng.choice((1, 1, 1, 2, 2, 3, 5))
    return _Line(
        product=product,
        quantity=quantity,
        # Multiples of 20 cents, as the list prices are: a twentieth off leaves whole cents.
        price_cents=list_cents + 20 * rng.randint(-8, 8),
        twentieths_off=rng.choice(_TWENTIETHS_OFF),
        returned=rng.randint(1, quantity) if rng.random() < _RETURNED_SHARE else 0,
    )


def _quarter_end(first_day: date) -> date:
    year, month = first_day.year, first_day.month + _MONTHS_IN_QUARTER
    return date(year + (month > 12), (month - 1) % 12 + 1, 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m agents.packs.sales.dataset OUT.duckdb")
    build(Path(sys.argv[1]))
    sys.stdout.write(f"built {sys.argv[1]}\n")

"""A small shop whose data has every awkward case: no partner to join, free goods, shops that open and close."""

import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from tools.sql.loading import TableSource, write_database
from tools.sql.model import SemanticModel, load_model
from tools.sql.values import Value

FIRST_DAY = date(2025, 10, 1)
DAYS = 270

MODEL_YAML = """
name: shop
description: {zh: 店铺, en: A shop}
grain: sale
time_column: sale.sold_on
tables: {sale: One line of a receipt, branch: A branch, area: Branches that lie together}
joins:
  - {many: sale.branch_code, one: branch.branch_code}
  - {many: branch.area_code, one: area.area_code}
measures:
  revenue: {labels: {en: Revenue}, aggregate: sum, expression: pieces * price * (1 - rebate), scale: 4}
  pieces: {labels: {en: Pieces}, aggregate: sum, expression: pieces, scale: 0}
  lines: {labels: {en: Lines}, aggregate: count, expression: pieces, scale: 0}
  receipts: {labels: {en: Receipts}, aggregate: count_distinct, expression: receipt, scale: 0}
  dearest: {labels: {en: Dearest}, aggregate: max, expression: price, scale: 2}
  cheapest: {labels: {en: Cheapest}, aggregate: min, expression: price * -(1), scale: 2}
  basket: {labels: {en: Basket}, numerator: revenue, denominator: receipts, scale: 3}
dimensions:
  branch: {column: sale.branch_code, labels: {en: Branch}}
  area: {column: area.area_name, labels: {en: Area}}
  item:
    column: sale.item
    labels: {en: Item}
    values:
      - {value: tea, labels: {zh: 茶, en: Tea}}
      - {value: nuts, labels: {en: Nuts}}
      - {value: rice, labels: {en: Rice}}
  month: {granularity: month, labels: {en: Month}}
"""


def shop_model(folder: Path) -> SemanticModel:
    path = folder / "shop.yaml"
    path.write_text(MODEL_YAML, encoding="utf-8")
    return load_model(path)


def build_shop(path: Path) -> None:
    text = "VARCHAR"
    branches = [("b1", "a1"), ("b2", "a1"), ("b3", "a2"), ("b4", "a2"), ("b5", "nowhere")]
    write_database(
        path,
        [
            TableSource(
                name="sale",
                columns=[
                    ("receipt", "BIGINT"),
                    ("line", "INTEGER"),
                    ("sold_on", "DATE"),
                    ("branch_code", text),
                    ("item", text),
                    ("pieces", "INTEGER"),
                    ("price", "DECIMAL(8,2)"),
                    ("rebate", "DECIMAL(4,2)"),
                ],
                key=["receipt", "line"],
                rows=_sales(),
            ),
            TableSource(
                name="branch",
                columns=[("branch_code", text), ("area_code", text)],
                key=["branch_code"],
                rows=branches,
            ),
            TableSource(
                name="area",
                columns=[("area_code", text), ("area_name", text)],
                key=["area_code"],
                rows=[("a1", "north"), ("a2", "south")],
            ),
            TableSource(name="secret", columns=[("word", text)], key=["word"], rows=[("sesame",)]),
        ],
    )


def _sales() -> list[Sequence[Value]]:
    rng = random.Random(11)
    rows: list[Sequence[Value]] = []
    for receipt in range(1, 301):
        day = FIRST_DAY + timedelta(days=rng.randrange(DAYS))
        # b4 opens late, b5 joins no area, b6 is no branch at all.
        open_branches = ["b1", "b2", "b3", "b5", "b6", *(["b4"] if day >= date(2026, 2, 1) else [])]
        branch = rng.choice(open_branches)
        free = branch == "b3" and day < date(2026, 1, 1)
        for line in range(1, rng.randint(2, 4)):
            rebate = Decimal(1) if free else Decimal(rng.choice((0, 0, 5, 15, 33))) / 100
            price = Decimal(rng.randint(1, 3000)) / 100
            rows.append(
                (
                    receipt,
                    line,
                    day,
                    branch,
                    rng.choice(("tea", "nuts", "rice")),
                    rng.randint(-1, 6),
                    price,
                    rebate,
                )
            )
    # Two days whose revenue falls by exactly 15 %.
    for number, amount in ((901, "200.00"), (902, "170.00")):
        rows.append((number, 1, date(2027, 1, number - 900), "b1", "tea", 1, Decimal(amount), Decimal(0)))
    return rows

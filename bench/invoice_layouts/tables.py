"""The table of goods or services in the styles that accounting programs print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.invoice_layouts.invoice import Invoice, Item
from bench.invoice_layouts.sheet import GREY, INK, PALE, WHITE, Colour, Content, Run, Sheet

STYLES = ("rules", "grid", "band", "zebra", "plain")

_WIDTHS = {
    "pos": 0.5,
    "article": 1.3,
    "description": 3.6,
    "quantity": 0.9,
    "unit": 0.7,
    "unit_price": 1.35,
    "rate": 0.8,
    "amount": 1.5,
    "hs": 1.35,
    "origin": 1.0,
}
_RIGHT = frozenset({"quantity", "unit_price", "rate", "amount"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: what stands at its head and how a row fills it."""

    key: str
    head: Content
    width: float
    """In points."""
    cell: Callable[[Item, int], Content]

    @property
    def right(self) -> bool:
        """Whether its cells are set to the right."""
        return self.key in _RIGHT


def columns_of(inv: Invoice, keys: Sequence[str], width: float, *, marked: bool) -> list[Column]:
    """The columns of those keys sharing `width` points; `marked` prints the currency at every amount."""
    wanted = [key for key in keys if key not in {"hs", "origin"} or inv.items[0].hs]
    weight = sum(_WIDTHS[key] for key in wanted)
    return [
        Column(
            key=key, head=_head(inv, key), width=width * _WIDTHS[key] / weight, cell=_cell(inv, key, marked=marked)
        )
        for key in wanted
    ]


def draw_table(
    sheet: Sheet,
    inv: Invoice,
    x: float,
    y: float,
    columns: Sequence[Column],
    *,
    style: str,
    accent: Colour,
    size: float = 8.5,
    note: Callable[[Item], Content] | None = None,
    least_rows: int = 0,
) -> float:
    """Print the table; returns its lower edge.

    Args:
        sheet: where to print.
        inv: whose items.
        x: left edge.
        y: upper edge.
        columns: see `columns_of`.
        style: one of `STYLES`.
        accent: colour of a filled head.
        size: type size.
        note: a second, smaller line below the description.
        least_rows: empty rows are left until there are so many, as on pre-printed forms.
    """
    width = sum(column.width for column in columns)
    row_height = size * (3.0 if note else 1.9)
    head_height = size * 2.1
    if style in {"band", "zebra"}:
        sheet.box(x, y, width, head_height, fill=accent)
    elif style == "rules":
        sheet.rule(x, y + head_height, x + width, y + head_height, thick=1)
    head_size = (size - 0.5) * min(
        1.0,
        *((column.width - 6) / sheet.measure(column.head, size=size - 0.5, bold=True) for column in columns),
    )
    _row(
        sheet,
        x,
        y + size * 1.4,
        columns,
        [column.head for column in columns],
        size=max(head_size, size * 0.6),
        bold=True,
        colour=WHITE if style in {"band", "zebra"} else INK,
    )
    top, y = y, y + head_height
    for index, item in enumerate(inv.items):
        if style == "zebra" and index % 2:
            sheet.box(x, y, width, row_height, fill=(240, 243, 247))
        cells = [column.cell(item, index) for column in columns]
        _row(sheet, x, y + size * 1.35, columns, cells, size=size, bold=False, colour=INK)
        if note:
            left = x + sum(column.width for column in columns[: _description(columns)])
            limit = columns[_description(columns)].width - 6
            sheet.write(left + 3, y + size * 2.5, note(item), size=size - 1.2, colour=GREY, limit=limit)
        y += row_height
        if style in {"band", "zebra"}:
            sheet.rule(x, y, x + width, y, colour=PALE)
    y += max(0, least_rows - len(inv.items)) * row_height
    if style == "rules":
        sheet.rule(x, y + 2, x + width, y + 2, thick=1)
    if style == "grid":
        _grid(sheet, x, top, y, head_height, columns)
    return y + 2


def hs_note(inv: Invoice) -> Callable[[Item], Content]:
    """A line with the tariff code and the origin for below the description."""

    def line(item: Item) -> Content:
        return [
            Run(f"{inv.word('hs')}: "),
            Run(item.hs_printed, "hs_codes"),
            Run(f"   {inv.word('origin')}: {item.origin}"),
        ]

    return line


def _description(columns: Sequence[Column]) -> int:
    return next(index for index, column in enumerate(columns) if column.key == "description")


def _row(
    sheet: Sheet,
    x: float,
    y: float,
    columns: Sequence[Column],
    cells: Sequence[Content],
    *,
    size: float,
    bold: bool,
    colour: Colour,
) -> None:
    for column, cell in zip(columns, cells, strict=True):
        edge = x + column.width - 3 if column.right else x + 3
        align = "right" if column.right else "left"
        sheet.write(edge, y, cell, size=size, bold=bold, colour=colour, align=align, limit=column.width - 6)
        x += column.width


def _grid(sheet: Sheet, x: float, top: float, bottom: float, head: float, columns: Sequence[Column]) -> None:
    width = sum(column.width for column in columns)
    sheet.box(x, top, width, bottom - top, edge=INK)
    sheet.rule(x, top + head, x + width, top + head)
    for column in columns[:-1]:
        x += column.width
        sheet.rule(x, top, x, bottom)


def _head(inv: Invoice, key: str) -> Content:
    word = inv.word(key)
    if key == "amount" and inv.notation.unmarked:
        return [Run(f"{word} "), Run(inv.notation.currency, "currency")]
    return word


def _cell(inv: Invoice, key: str, *, marked: bool) -> Callable[[Item, int], Content]:
    notation = inv.notation

    def amount(item: Item, field: str | None, *, price: bool) -> Content:
        value = item.price if price else item.amount
        return notation.money(value, field) if marked else Run(notation.number(value), field)

    cells: dict[str, Callable[[Item, int], Content]] = {
        "pos": lambda _, index: str(index + 1),
        "article": lambda item, _: item.code,
        "description": lambda item, _: item.description,
        "quantity": lambda item, _: inv.quantity_text(item),
        "unit": lambda item, _: item.unit,
        "unit_price": lambda item, _: amount(item, None, price=True),
        "rate": lambda item, _: inv.rate_text(item.rate),
        "amount": lambda item, _: amount(item, "lines", price=False),
        "hs": lambda item, _: Run(item.hs_printed, "hs_codes"),
        "origin": lambda item, _: item.origin,
    }
    return cells[key]

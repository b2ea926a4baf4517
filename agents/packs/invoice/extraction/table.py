"""The table of goods: its heads, its columns and its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from agents.packs.invoice.extraction.amounts import Amount, printed, tolerance
from agents.packs.invoice.extraction.confidence import Assessment, ocr_factor
from agents.packs.invoice.extraction.frame import Segment, Sheet, Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.model import Field, LineItem
from tools.document.reading import Box

_HEADS = frozenset(
    {
        "column",
        "quantity",
        "price",
        "amount",
        "total",
        "net",
        "tax",
        "rate",
        "hs",
        "supplier",
        "currency",
        "other_amount",
        "other_id",
        "date",
        "other_date",
    }
)
_ANCHORS = frozenset({"column", "quantity", "price"})
_SUMS = frozenset({"net", "tax", "total", "rate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head row of a table: which label heads which column."""

    row: int
    labels: tuple[Label, ...]
    sums_up: bool = False
    """True for a tax table, whose columns are net, tax and gross."""

    @property
    def foot(self) -> float:
        """The y where the head ends."""
        return max(label.segment.y1 for label in self.labels)

    def distance(self, label: Label, amount: Amount) -> float:
        """How far, in pixels, an amount stands from a label's column; zero when it is under it."""
        span = amount.span
        lone = sum(other.segment is label.segment for other in self.labels) == 1
        x0, x1 = (label.segment.x0, label.segment.x1) if lone else (label.span.x0, label.span.x1)
        if span.x0 < x1 and x0 < span.x1:
            return 0.0
        return min(abs(span.x0 - x0), abs(span.x1 - x1), abs(span.x0 + span.x1 - x0 - x1) / 2)


def mark_heads(sheet: Sheet, labels: Sequence[Label], amounts: Sequence[Amount]) -> tuple[list[Label], list[Head]]:
    """The labels with the column heads marked, and the heads.

    A row heads a table of goods when it names at least two columns, one of them a description, a quantity or a
    unit price. It heads a tax table when it names net, tax or gross and at least two rows of amounts follow.
    Neither holds amounts itself.
    """
    by_row: dict[int, list[Label]] = {}
    for label in labels:
        by_row.setdefault(sheet.row_of[label.segment.index], []).append(label)
    money_rows: dict[int, int] = {}
    for amount in amounts:
        if amount.looks_like_money:
            row = sheet.row_of[amount.span.segment.index]
            money_rows[row] = money_rows.get(row, 0) + 1
    heads = []
    for row, group in sorted(by_row.items()):
        digits = sum(any(char.isdigit() for char in segment.text) for segment in sheet.rows[row])
        if row in money_rows or digits > 1:
            continue
        columns = tuple(label for label in group if label.kind in _HEADS)
        kinds = {label.kind for label in columns}
        anchors = kinds & _ANCHORS
        if (
            len(kinds) >= 2
            and anchors
            and (len(anchors) >= 2 or "column" in anchors or kinds & {"amount", "total"})
        ):
            heads.append(Head(row=row, labels=columns))
        elif (
            len(kinds & _SUMS) >= 2
            and len(columns) >= 3
            and all(money_rows.get(row + step, 0) >= 2 for step in (1, 2))
        ):
            heads.append(Head(row=row, labels=columns, sums_up=True))
    members = {id(label) for head in heads for label in head.labels}
    return [replace(label, is_head=True) if id(label) in members else label for label in labels], heads


def read_lines(
    sheet: Sheet, labels: Sequence[Label], heads: Sequence[Head], amounts: Sequence[Amount], places: int
) -> list[LineItem]:
    """The rows under each head; without a head, rows with a text at the left and an amount at the right."""
    by_segment: dict[int, list[Amount]] = {}
    for amount in amounts:
        by_segment.setdefault(amount.span.segment.index, []).append(amount)
    stops = _stop_rows(sheet, labels)
    items: list[LineItem] = []
    for head in (head for head in heads if not head.sums_up):
        items.extend(_under_head(sheet, head, stops, by_segment, places))
    return items or _without_head(sheet, labels, stops, by_segment, places)


def _stop_rows(sheet: Sheet, labels: Sequence[Label]) -> set[int]:
    """Rows that sum up: they open with a total, net or tax label that is no column head."""
    return {
        sheet.row_of[label.segment.index]
        for label in labels
        if label.kind in {"total", "net", "tax", "other_amount"}
        and not label.is_head
        and label.span.start <= 14
        and _short(label)
    }


def _short(label: Label) -> bool:
    words = [word for word in label.segment.text.split() if any(char.isalpha() for char in word)]
    return len(words) <= len(label.span.text.split()) + 3


def _under_head(
    sheet: Sheet, head: Head, stops: set[int], by_segment: Mapping[int, Sequence[Amount]], places: int
) -> list[LineItem]:
    items: list[LineItem] = []
    last_foot = head.foot
    for number in range(head.row + 1, len(sheet.rows)):
        row = sheet.rows[number]
        if number in stops or row[0].y0 - last_foot > 6 * sheet.unit:
            break
        last_foot = max(last_foot, max(segment.y1 for segment in row))
        money = [amount for segment in row for amount in by_segment.get(segment.index, ()) if not amount.percent]
        if any(amount.looks_like_money or places == 0 for amount in money) and len(row) + len(money) > 2:
            items.append(_item(row, head, money, places))
        elif items and len(row) == 1 and not money and row[0].y0 - items_foot(items, sheet) < 1.2 * sheet.unit:
            items[-1] = _continued(items[-1], row[0])
    return items


def items_foot(items: Sequence[LineItem], sheet: Sheet) -> float:
    """Upright y of the lowest text of the last item."""
    spans = {cell.source_text for cell in (items[-1].description, items[-1].amount) if cell.source_text}
    return max(
        (
            segment.y1
            for segment in sheet.segments
            if any(text and text.split("\n")[-1] in segment.text for text in spans)
        ),
        default=0.0,
    )


def _continued(item: LineItem, segment: Segment) -> LineItem:
    """A line without amounts right below belongs to the description above it."""
    before = item.description
    if before.value is None or any(char in segment.text for char in "：:") or before.box is None:
        return item
    joined = replace(
        before,
        value=f"{before.value} {segment.text}",
        source_text=f"{before.source_text}\n{segment.text}",
        box=_union([before.box, segment.line.box]),
    )
    return replace(item, description=joined)


def _item(row: Sequence[Segment], head: Head, money: Sequence[Amount], places: int) -> LineItem:
    cells = {
        kind: _nearest(head, kinds, money)
        for kind, kinds in (
            ("quantity", {"quantity"}),
            ("price", {"price"}),
            ("amount", {"amount", "total", "net"}),
        )
    }
    ordered = sorted(
        (amount for amount in money if amount.looks_like_money or places == 0), key=lambda amount: amount.span.x0
    )
    if cells["amount"] is None and ordered:
        cells["amount"] = ordered[-1]
    if cells["price"] is cells["amount"]:
        cells["price"] = ordered[-2] if len(ordered) > 1 and ordered[-2] is not cells["quantity"] else None
    if cells["quantity"] in (cells["amount"], cells["price"]):
        cells["quantity"] = None
    used = {id(amount) for amount in cells.values()}
    texts = [
        segment
        for segment in row
        if any(char.isalpha() for char in segment.text)
        and not any(id(amount) in used and amount.span.segment is segment for amount in money)
    ]
    if not texts:
        texts = [segment for segment in row if sum(char.isalpha() for char in segment.text) > 3]
    longest = max(texts, key=lambda segment: sum(char.isalpha() for char in segment.text), default=None)
    return _build(row, longest, cells, places)


def _nearest(head: Head, kinds: set[str], money: Sequence[Amount]) -> Amount | None:
    columns = [label for label in head.labels if label.kind in kinds]
    if not columns:
        return None
    column = columns[-1]
    others = [label for label in head.labels if label is not column]

    near = [
        amount
        for amount in money
        if all(head.distance(column, amount) <= head.distance(other, amount) for other in others)
    ]
    return min(near, key=lambda amount: head.distance(column, amount), default=None)


def _build(
    row: Sequence[Segment], text: Segment | None, cells: Mapping[str, Amount | None], places: int
) -> LineItem:
    quantity, price, amount = cells["quantity"], cells["price"], cells["amount"]
    note = Assessment(value=0.9)
    if quantity and price and amount:
        product = quantity.value * price.value
        agrees = abs(product - amount.value) <= max(tolerance(amount.value), abs(amount.value) / Decimal(1000))
        note.support(0.8, "quantity_times_price", when=agrees)
        note.doubt(0.75, "quantity_times_price_differs", when=not agrees)
    else:
        note.doubt(0.85, "cells_missing")
    note.doubt(ocr_factor(segment.line.confidence for segment in row), "ocr_unsure")
    confidence, reasons = note.result(), tuple(note.reasons)
    page = row[0].page

    def cell(name: str, item: Amount | None, digits: int) -> Field:
        if item is None:
            return Field.absent(name, "amount", "not_in_row")
        return Field(
            name=name,
            kind="amount",
            value=printed(item.value, digits),
            confidence=confidence,
            page=page,
            box=item.span.box,
            source_text=item.span.text,
            reasons=reasons,
        )

    described = (
        Field(
            name="description",
            kind="text",
            value=text.text,
            confidence=min(0.95, text.line.confidence),
            page=page,
            box=text.line.box,
            source_text=text.text,
        )
        if text
        else Field.absent("description", "text", "not_in_row")
    )
    return LineItem(
        description=described,
        quantity=cell("quantity", quantity, 0),
        unit_price=cell("unit_price", price, places),
        amount=cell("amount", amount, places),
        confidence=confidence,
        page=page,
        box=_union([segment.line.box for segment in row]),
    )


def _without_head(
    sheet: Sheet, labels: Sequence[Label], stops: set[int], by_segment: Mapping[int, Sequence[Amount]], places: int
) -> list[LineItem]:
    """Receipts have no heads: a row with a text and an amount right of it, above the first sum."""
    first_stop = min(stops, default=0)
    labelled = {
        sheet.row_of[label.segment.index]
        for label in labels
        if label.kind not in {"column", "title"} or label.is_head
    }
    items = []
    for number in range(first_stop):
        row = sheet.rows[number]
        money = [
            amount for segment in row for amount in by_segment.get(segment.index, ()) if amount.looks_like_money
        ]
        text = next((segment for segment in row if sum(char.isalpha() for char in segment.text) >= 2), None)
        if number in labelled or not money or text is None:
            continue
        last = max(money, key=lambda amount: amount.span.x1)
        if last.span.x0 < text.x0:
            continue
        whole = [
            amount
            for segment in row
            for amount in by_segment.get(segment.index, ())
            if not amount.looks_like_money and not amount.percent
        ]
        cells = {
            "quantity": whole[0] if whole and whole[0].span.x0 <= text.x0 + sheet.unit * 2 else None,
            "price": money[0] if len(money) > 1 else None,
            "amount": last,
        }
        items.append(_build(row, text, cells, places))
    return items


def line_sum(items: Sequence[LineItem]) -> Decimal | None:
    """Sum of the rows' amounts, or None when a row has none."""
    values = [item.amount.value for item in items]
    if not values or any(value is None for value in values):
        return None
    return sum((Decimal(value) for value in values if value is not None), Decimal(0))


def _union(boxes: Sequence[Box]) -> Box:
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    return left, top, right - left, bottom - top


def span_of(segment: Segment) -> Span:
    """The whole segment as a span."""
    return Span(segment=segment, start=0, end=len(segment.text))

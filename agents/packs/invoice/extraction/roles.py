"""Which amount plays which role: named by a label, or by standing in the last row of a summed column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from agents.packs.invoice.extraction.amounts import Amount, tolerance
from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.relation import Neighbours
from agents.packs.invoice.extraction.table import Head

_ROLES = frozenset(
    {
        "total",
        "net",
        "tax",
        "other_amount",
        "rate",
        "due",
        "other_id",
        "number",
        "terms",
        "date",
        "other_date",
        "amount",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """An amount as one label sees it."""

    index: int
    label: Label
    score: float
    link_score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxTable:
    """What a table of tax rates implies."""

    total: Decimal
    taxes: tuple[Role, ...] = ()
    """The tax of each rate; empty when the table does not show that net and tax make up the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSums:
    """What the columns of goods tables and tax tables add up to."""

    roles: Mapping[str, Sequence[Role]] = field(default_factory=dict)
    """Amounts of sum rows, by kind of their column."""
    tables: tuple[TaxTable, ...] = ()
    """What the columns of tax tables without a sum row imply."""


def label_roles(
    labels: Sequence[Label], amounts: Sequence[Amount], neighbours: Neighbours
) -> dict[str, list[Role]]:
    """For each label the amount it most likely names: the last one of its row, or the one below."""
    roles: dict[str, list[Role]] = {}
    rivals: dict[int, tuple[float, str]] = {}
    for label in labels:
        if label.kind not in _ROLES or label.is_head:
            continue
        for index, score, linked in _amounts_of(label, amounts, neighbours):
            if label.kind in {"total", "net", "tax", "other_amount"}:
                roles.setdefault(label.kind, []).append(
                    Role(index=index, label=label, score=score, link_score=linked)
                )
            if score > rivals.get(index, (0.0, ""))[0]:
                rivals[index] = (score, label.kind)
    kept: dict[str, list[Role]] = {}
    for kind, group in roles.items():
        for role in group:
            rival, owner = rivals[role.index]
            score = role.score if owner == kind else role.score - 0.8 * (rival - role.score) - 0.15
            if score > 0.08:
                kept.setdefault(kind, []).append(
                    Role(index=role.index, label=role.label, score=score, link_score=role.link_score)
                )
        kept.get(kind, []).sort(key=lambda role: -role.score)
    return kept


def _amounts_of(
    label: Label, amounts: Sequence[Amount], neighbours: Neighbours
) -> Iterator[tuple[int, float, float]]:
    found = []
    for index, amount in enumerate(amounts):
        if amount.percent:
            continue
        link = neighbours.link(label, amount.span)
        if link is None:
            continue
        score = link.score * label.strength * _money_worth(amount)
        found.append((index, score, link.place, amount.span.x1, link.score))
    beside = [item for item in found if item[2] in {"same", "right"} and item[4] > 0.3]
    if beside:
        # In a row such as "VAT 19 % of 100.00  19.00" the last amount is the label's.
        last = max(beside, key=lambda item: (amounts[item[0]].looks_like_money, item[3]))
        lift = max(
            item[1] for item in beside if amounts[item[0]].looks_like_money == amounts[last[0]].looks_like_money
        )
        yield last[0], lift, max(item[4] for item in beside)
        for item in beside:
            if item[0] != last[0]:
                yield item[0], item[1] * 0.7, item[4]
    for item in found:
        if item not in beside:
            yield item[0], item[1] * (0.5 if beside else 1.0), item[4]


def _money_worth(amount: Amount) -> float:
    if amount.looks_like_money:
        return 1.0
    return 0.75 if abs(amount.value) >= 10 else 0.4


def column_sums(
    sheet: Sheet, labels: Sequence[Label], heads: Sequence[Head], amounts: Sequence[Amount]
) -> ColumnSums:
    """Read the sum rows under table heads: a last amount that equals the sum of those above it.

    A tax table without a sum row lists net, tax and gross for each rate; then each tax counts, and the columns'
    sums say what the total must be.
    """
    roles: dict[str, list[Role]] = {}
    tables: list[TaxTable] = []
    for head in heads:
        columns = [
            (label, cells) for label, cells in _columns(sheet, labels, head, amounts) if not _is_rate_column(label)
        ]
        summed = {label.kind for label, cells in columns if _is_sum(cells, amounts)}
        has_tax = any(label.kind == "tax" for label, _ in columns)
        if head.sums_up and len(summed) < 2:
            tables.extend(_implied(columns, amounts))
            for label, cells in columns:
                if label.kind == "tax":
                    roles.setdefault("tax", []).extend(_role(index, label, 0.75) for index in cells)
            continue
        for label, cells in columns:
            kind = "net" if label.kind == "amount" or (label.kind == "total" and not head.sums_up) else label.kind
            if has_tax and kind in {"net", "tax", "total"} and cells and _is_sum(cells, amounts):
                roles.setdefault(kind, []).append(_role(cells[-1], label, 0.85))
    return ColumnSums(roles=roles, tables=tuple(tables))


def _is_rate_column(label: Label) -> bool:
    """``%IVA`` or ``VAT %`` heads rates: their cells look like amounts where the sign stands in the head only."""
    text = label.segment.text
    return "%" in text and not any(char.isdigit() for char in text)


def _role(index: int, label: Label, score: float) -> Role:
    return Role(index=index, label=label, score=score, link_score=score)


def _is_sum(cells: Sequence[int], amounts: Sequence[Amount]) -> bool:
    values = [amounts[index].value for index in cells]
    return (
        len(values) >= 2
        and values[-1] != 0
        and abs(sum(values[:-1], Decimal(0)) - values[-1]) <= tolerance(values[-1])
    )


def _implied(columns: Sequence[tuple[Label, Sequence[int]]], amounts: Sequence[Amount]) -> Iterator[TaxTable]:
    sums: dict[str, Decimal] = {}
    taxes = next(
        (tuple(_role(index, label, 0.75) for index in cells) for label, cells in columns if label.kind == "tax"),
        (),
    )
    for label, cells in columns:
        if cells and label.kind in {"net", "tax", "total"}:
            sums.setdefault(label.kind, sum((amounts[index].value for index in cells), Decimal(0)))
    if "net" in sums and "tax" in sums:
        yield TaxTable(total=sums["net"] + sums["tax"], taxes=taxes)
    if "total" in sums:
        yield TaxTable(total=sums["total"])


def _columns(
    sheet: Sheet, labels: Sequence[Label], head: Head, amounts: Sequence[Amount]
) -> list[tuple[Label, list[int]]]:
    """The amounts under each label of the head, top to bottom, to the next head or a gap."""
    named: dict[int, int] = {}
    own_label = {label.segment.index for label in labels if label.kind in {"total", "net", "tax", "other_amount"}}
    for label in labels:
        number = sheet.row_of[label.segment.index]
        named[number] = named.get(number, 0) + 1
    columns: list[tuple[Label, list[int]]] = [(label, []) for label in head.labels]
    foot = head.foot
    for number in range(head.row + 1, len(sheet.rows)):
        row = sheet.rows[number]
        members = {segment.index for segment in row}
        cells = [
            (index, amount)
            for index, amount in enumerate(amounts)
            if amount.span.segment.index in members - own_label and amount.looks_like_money
        ]
        if row[0].y0 - foot > 4 * sheet.unit:
            break
        if not cells and named.get(number, 0) >= 2 and any(found for _, found in columns):
            break
        if not cells:
            continue
        foot = max(segment.y1 for segment in row)
        for index, amount in cells:
            label = min(head.labels, key=lambda item: head.distance(item, amount))
            if head.distance(label, amount) < 3 * sheet.unit:
                next(column for column in columns if column[0] is label)[1].append(index)
    return columns

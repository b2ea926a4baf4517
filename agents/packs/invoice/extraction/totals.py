"""The invoice total, the net sum and the tax: labels propose, arithmetic decides.

A total that equals net plus tax, or the sum of the lines, is confirmed by the page itself. Where labels and
arithmetic disagree, the label's amount stays the answer and its confidence sinks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations

from agents.packs.invoice.extraction.amounts import Amount, tolerance
from agents.packs.invoice.extraction.conflicts import PAID, conflicts
from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.relation import Neighbours
from agents.packs.invoice.extraction.roles import ColumnSums, Role, TaxTable, label_roles
from agents.packs.invoice.extraction.tax_proof import is_shown

_CANDIDATES = 12
"""Amounts tried for one role; no honest page has more, and the trials multiply."""
_CONVERTED = re.compile(r"equivalent|umgerechnet|gegenwert|contre-?valeur|tegenwaarde|contravalor|converted|折合")
"""Below such a line the sums come again in another currency."""
_UNNAMED = 0.2
"""Score of an amount that no label names."""
_SUBTRACTED = (
    "discount",
    "rabatt",
    "remise",
    "rabais",
    "korting",
    "descuento",
    "折扣",
    "优惠",
    "nachlass",
    "dto",
    "sconto",
    "desconto",
    "ristourne",
    "retencion",
    "irpf",
    "escompte",
    "skonto",
    "coupon",
    "promo",
    "credits",
    "savings",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """The amounts chosen, and what confirms them."""

    total: Role | None
    net: Role | None = None
    taxes: tuple[Role, ...] = ()
    ranked: tuple[tuple[Role, float], ...] = ()
    """Candidates for the total with their final score, best first."""
    proofs: tuple[str, ...] = ()
    """``net_plus_tax``, ``tax_table``, ``lines_sum``, ``words``; empty when nothing confirms the total."""
    conflicts: tuple[str, ...] = field(default=())
    parts_proven: bool = False
    """True when net and taxes themselves are shown to make up the total, not only the total to be right."""


def reckon(
    sheet: Sheet,
    labels: Sequence[Label],
    amounts: Sequence[Amount],
    neighbours: Neighbours,
    line_sum: Decimal | None,
    words: Decimal | None,
    columns: ColumnSums,
) -> Reckoning:
    """Choose total, net and tax.

    Args:
        sheet: the page.
        labels: all labels; heads of table columns are left aside.
        amounts: all amounts.
        neighbours: what stands between labels and amounts.
        line_sum: sum of the line items, when a table was read.
        words: the total as written in words (Chinese capitals), when present.
        columns: what the columns of tables sum up to.
    """
    roles = label_roles(labels, amounts, neighbours)
    for kind, extra in columns.roles.items():
        roles[kind] = sorted([*roles.get(kind, ()), *extra], key=lambda role: -role.score)
    totals = _best_by_amount(roles.get("total", ()))[:_CANDIDATES]
    totals += _unnamed(roles, amounts, {role.index for role in totals})
    if not totals:
        return _without_total(roles)
    largest = max((abs(amount.value) for amount in amounts if amount.looks_like_money), default=Decimal(0))
    scored = []
    for role in totals:
        proofs = _proofs(role, roles, amounts, line_sum, words)
        if any(_near(table.total, amounts[role.index].value) for table in columns.tables):
            proofs.append("tax_table")
        scored.append((role, _score(sheet, role, amounts, proofs, largest), proofs))
    scored = [
        item for item in scored if item[0].score > _UNNAMED or "net_plus_tax" in item[2] or "words" in item[2]
    ]
    if not scored:
        return _without_total(roles)
    scored.sort(key=lambda item: -item[1])
    best, _, proofs = scored[0]
    net, taxes = _parts(best, roles, amounts)
    table = _table_of(amounts[best.index].value, columns.tables)
    if table and "net_plus_tax" not in proofs:
        taxes = table.taxes
    disagreeing = ("lines_disagree",) if line_sum and not proofs else ()
    return Reckoning(
        total=best,
        net=net,
        taxes=taxes,
        ranked=tuple((role, score) for role, score, _ in scored),
        proofs=tuple(proofs),
        conflicts=(
            *disagreeing,
            *conflicts(
                best,
                proofs,
                roles,
                amounts,
                words,
                _first(roles, "net", best.index),
                [(role, theirs) for role, _, theirs in scored[1:]],
            ),
        ),
        parts_proven="net_plus_tax" in proofs or table is not None or is_shown(sheet, best, taxes, amounts),
    )


def _table_of(total: Decimal, tables: Sequence[TaxTable]) -> TaxTable | None:
    return next((table for table in tables if table.taxes and _near(table.total, total)), None)


def _without_total(roles: Mapping[str, Sequence[Role]]) -> Reckoning:
    """Net and tax stand by their labels alone where no amount can be the total."""
    tax = next((role for role in _best_by_amount(roles.get("tax", ())) if role.score > 0.4), None)
    return Reckoning(total=None, net=_first(roles, "net"), taxes=(tax,) if tax else ())


def _best_by_amount(roles: Sequence[Role]) -> list[Role]:
    best: dict[int, Role] = {}
    for role in roles:
        if role.index not in best or role.score > best[role.index].score:
            best[role.index] = role
    return sorted(best.values(), key=lambda role: -role.score)


def _unnamed(roles: Mapping[str, Sequence[Role]], amounts: Sequence[Amount], known: set[int]) -> list[Role]:
    """The largest amounts without a total's label: one is the total all the same when net and tax add up to it."""
    net = _first(roles, "net")
    if net is None:
        return []
    floor = abs(amounts[net.index].value)
    others = {
        role.index for kind in ("net", "tax", "other_amount") for role in roles.get(kind, ()) if role.score > 0.6
    }
    free = [
        index
        for index, amount in enumerate(amounts)
        if amount.looks_like_money and index not in known | others and abs(amount.value) >= floor / 2
    ]
    free.sort(key=lambda index: -abs(amounts[index].value))
    return [Role(index=index, label=net.label, score=_UNNAMED, link_score=1.0) for index in free[:4]]


def _score(sheet: Sheet, role: Role, amounts: Sequence[Amount], proofs: Sequence[str], largest: Decimal) -> float:
    amount = amounts[role.index]
    segment = amount.span.segment
    depth = (segment.y0 - sheet.top) / max(sheet.bottom - sheet.top, 1.0)
    score = role.score
    score += (
        0.3 * ("net_plus_tax" in proofs or "tax_table" in proofs)
        + 0.25 * ("words" in proofs)
        + 0.12 * ("lines_sum" in proofs)
    )
    score += 0.12 * (abs(amount.value) == largest) + 0.05 * bool(amount.mark)
    score += 0.04 * min(1.0, max(0.0, segment.height / sheet.unit - 1.0)) + 0.03 * depth
    converted = any(
        _CONVERTED.search(other.folded.plain) and other.page == segment.page and other.y0 < segment.y0
        for other in sheet.segments
    )
    return score - 0.15 * (amount.value == 0) - 0.3 * converted


def _near(a: Decimal, b: Decimal) -> bool:
    return abs(a - b) <= min(tolerance(a), tolerance(b))


def _signed(role: Role, value: Decimal) -> Decimal:
    """The value with the sign it enters the sum with; a discount is often printed without its minus."""
    words = role.label.span.segment.folded.compact
    return -abs(value) if any(word in words for word in _SUBTRACTED) else value


def _adjustments(roles: Mapping[str, Sequence[Role]], amounts: Sequence[Amount]) -> list[Decimal]:
    seen: set[int] = set()
    values = []
    for role in roles.get("other_amount", ()):
        compact = role.label.span.segment.folded.compact
        if role.index in seen or role.score < 0.4 or any(word in compact for word in PAID):
            continue
        seen.add(role.index)
        values.append(_signed(role, amounts[role.index].value))
    return values[:4]


def _tax_sets(roles: Mapping[str, Sequence[Role]], total: Role) -> list[tuple[Role, ...]]:
    taxes = [
        role for role in _best_by_amount(roles.get("tax", ())) if role.index != total.index and role.score > 0.25
    ][:5]
    return [combo for size in range(1, min(4, len(taxes)) + 1) for combo in combinations(taxes, size)]


def _parts(
    total: Role, roles: Mapping[str, Sequence[Role]], amounts: Sequence[Amount]
) -> tuple[Role | None, tuple[Role, ...]]:
    """The net sum and the taxes that add up to the total; else the best labelled ones."""
    value = amounts[total.index].value
    extras = _adjustments(roles, amounts)
    sums = {Decimal(0)} | {
        sum(combo, Decimal(0)) for size in range(1, len(extras) + 1) for combo in combinations(extras, size)
    }
    nets = [role for role in _best_by_amount(roles.get("net", ())) if role.index != total.index][:_CANDIDATES]
    for taxes in _tax_sets(roles, total):
        tax = sum((amounts[role.index].value for role in taxes), Decimal(0))
        for net in nets:
            if any(_near(amounts[net.index].value + tax + extra, value) for extra in sums) and net.index not in {
                role.index for role in taxes
            }:
                return net, taxes
    best_tax = max(
        (role for role in roles.get("tax", ()) if role.index != total.index),
        key=lambda role: role.score,
        default=None,
    )
    return _first(roles, "net", total.index), (best_tax,) if best_tax and best_tax.score > 0.4 else ()


def _first(roles: Mapping[str, Sequence[Role]], kind: str, without: int = -1) -> Role | None:
    return next((role for role in roles.get(kind, ()) if role.index != without and role.score > 0.4), None)


def _proofs(
    total: Role,
    roles: Mapping[str, Sequence[Role]],
    amounts: Sequence[Amount],
    line_sum: Decimal | None,
    words: Decimal | None,
) -> list[str]:
    value = amounts[total.index].value
    proofs = []
    net, taxes = _parts(total, roles, amounts)
    tax = sum((amounts[role.index].value for role in taxes), Decimal(0))
    extras = _adjustments(roles, amounts)
    sums = {Decimal(0)} | {
        sum(combo, Decimal(0)) for size in range(1, len(extras) + 1) for combo in combinations(extras, size)
    }
    if net and any(_near(amounts[net.index].value + tax + extra, value) for extra in sums) and (taxes or extras):
        proofs.append("net_plus_tax")
    if line_sum and _lines_agree(line_sum, value, tax, sums, amounts[net.index].value if net and proofs else None):
        proofs.append("lines_sum")
    if words is not None and _near(words, value):
        proofs.append("words")
    return proofs


def _lines_agree(lines: Decimal, total: Decimal, tax: Decimal, extras: set[Decimal], net: Decimal | None) -> bool:
    """True when the line items add up to the total, with or without tax, or to a net sum that is proven."""
    return any(_near(lines + extra, total) or (tax and _near(lines + tax + extra, total)) for extra in extras) or (
        net is not None and _near(lines, net)
    )

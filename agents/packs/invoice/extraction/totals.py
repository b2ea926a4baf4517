"""The invoice total, the net sum and the tax: labels propose, arithmetic decides.

A total that equals net plus tax, or the sum of the lines, is confirmed by the page itself. Where labels and
arithmetic disagree, the label's amount stays the answer and its confidence sinks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations

from agents.packs.invoice.extraction.amounts import Amount
from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.relation import Neighbours

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
        "price",
        "quantity",
        "terms",
        "date",
        "other_date",
        "amount",
    }
)
_DUE = (
    "due",
    "topay",
    "zahlen",
    "apayer",
    "apagar",
    "betalen",
    "balance",
    "payable",
    "voldoen",
    "regler",
    "应付",
    "pay",
    "bezahlen",
    "nachzahlung",
    "owing",
    "owed",
    "reste",
    "solde",
)
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
_PAID = (
    "paid",
    "received",
    "deposit",
    "payments",
    "payment",
    "bezahlt",
    "gezahlt",
    "anzahlung",
    "abschlag",
    "vorauszahlung",
    "acompte",
    "regle",
    "paye",
    "avance",
    "arrhes",
    "betaald",
    "voldaan",
    "voorschot",
    "aanbetaling",
    "anticipo",
    "pagado",
    "已付",
    "预付",
    "定金",
    "订金",
    "押金",
    "acconto",
    "zahlung",
    "prepaid",
    "guthaben",
    "credit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """An amount as one label sees it."""

    index: int
    label: Label
    score: float
    link_score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """The amounts chosen, and what confirms them."""

    total: Role | None
    net: Role | None = None
    taxes: tuple[Role, ...] = ()
    ranked: tuple[tuple[Role, float], ...] = ()
    """Candidates for the total with their final score, best first."""
    proofs: tuple[str, ...] = ()
    """``net_plus_tax``, ``lines_sum``, ``tax_rate``, ``words``; empty when nothing on the page confirms the total."""
    conflicts: tuple[str, ...] = field(default=())


def reckon(
    sheet: Sheet,
    labels: Sequence[Label],
    amounts: Sequence[Amount],
    neighbours: Neighbours,
    line_sum: Decimal | None,
    words: Decimal | None,
) -> Reckoning:
    """Choose total, net and tax.

    Args:
        sheet: the page.
        labels: all labels; heads of table columns are left aside.
        amounts: all amounts.
        neighbours: what stands between labels and amounts.
        line_sum: sum of the line items, when a table was read.
        words: the total as written in words (Chinese capitals), when present.
    """
    roles = _roles(labels, amounts, neighbours)
    totals = _best_by_amount(roles.get("total", ()))
    if not totals:
        return Reckoning(total=None, net=_first(roles, "net"))
    largest = max((abs(amount.value) for amount in amounts if amount.looks_like_money), default=Decimal(0))
    scored = []
    for role in totals:
        proofs = _proofs(role, roles, amounts, line_sum, words)
        scored.append((role, _score(sheet, role, amounts, proofs, largest), proofs))
    scored.sort(key=lambda item: -item[1])
    best, _, proofs = scored[0]
    net, taxes = _parts(best, roles, amounts)
    return Reckoning(
        total=best,
        net=net,
        taxes=taxes,
        ranked=tuple((role, score) for role, score, _ in scored),
        proofs=tuple(proofs),
        conflicts=tuple(_conflicts(best, proofs, roles, amounts, words, [role for role, score, _ in scored[1:]])),
    )


def _roles(labels: Sequence[Label], amounts: Sequence[Amount], neighbours: Neighbours) -> dict[str, list[Role]]:
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
    beside = [item for item in found if item[2] in {"same", "right"} and item[1] > 0.25]
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


def _best_by_amount(roles: Sequence[Role]) -> list[Role]:
    best: dict[int, Role] = {}
    for role in roles:
        if role.index not in best or role.score > best[role.index].score:
            best[role.index] = role
    return list(best.values())


def _score(sheet: Sheet, role: Role, amounts: Sequence[Amount], proofs: Sequence[str], largest: Decimal) -> float:
    amount = amounts[role.index]
    segment = amount.span.segment
    depth = (segment.y0 - sheet.top) / max(sheet.bottom - sheet.top, 1.0)
    score = role.score
    score += 0.3 * ("net_plus_tax" in proofs) + 0.25 * ("words" in proofs) + 0.12 * ("lines_sum" in proofs)
    score += 0.12 * (abs(amount.value) == largest) + 0.05 * bool(amount.mark)
    score += 0.04 * min(1.0, max(0.0, segment.height / sheet.unit - 1.0)) + 0.03 * depth
    return score - 0.15 * (amount.value == 0)


def tolerance(value: Decimal) -> Decimal:
    """How far rounded sums may be apart: two cents, or one unit where amounts have no decimals."""
    exponent = value.as_tuple().exponent
    return Decimal("0.02") if isinstance(exponent, int) and exponent < 0 else Decimal(1)


def _near(a: Decimal, b: Decimal) -> bool:
    return (
        abs(a - b) <= max(tolerance(a), tolerance(b))
        if min(tolerance(a), tolerance(b)) == tolerance(a)
        else abs(a - b) <= Decimal("0.02")
    )


def _signed(role: Role, value: Decimal) -> Decimal:
    """The value with the sign it enters the sum with; a discount is often printed without its minus."""
    words = role.label.span.segment.folded.compact
    return -abs(value) if any(word in words for word in _SUBTRACTED) else value


def _adjustments(roles: Mapping[str, Sequence[Role]], amounts: Sequence[Amount]) -> list[Decimal]:
    seen: set[int] = set()
    values = []
    for role in roles.get("other_amount", ()):
        compact = role.label.span.segment.folded.compact
        if role.index in seen or role.score < 0.4 or any(word in compact for word in _PAID):
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
    nets = [role for role in _best_by_amount(roles.get("net", ())) if role.index != total.index]
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
    if line_sum is not None and line_sum != 0:
        if any(
            _near(line_sum + extra, value) or (taxes and _near(line_sum + tax + extra, value)) for extra in sums
        ):
            proofs.append("lines_sum")
        elif "net_plus_tax" in proofs and net and _near(line_sum, amounts[net.index].value):
            proofs.append("lines_sum")
    if words is not None and _near(words, value):
        proofs.append("words")
    return proofs


def _conflicts(
    best: Role,
    proofs: Sequence[str],
    roles: Mapping[str, Sequence[Role]],
    amounts: Sequence[Amount],
    words: Decimal | None,
    others: Sequence[Role],
) -> Iterator[str]:
    value = amounts[best.index].value
    if words is not None and "words" not in proofs:
        yield "words_disagree"
    net, taxes = _first(roles, "net", best.index), roles.get("tax", ())
    if not proofs and net and taxes and amounts[net.index].value != value:
        yield "sum_disagrees"
    paid = [
        role
        for role in roles.get("other_amount", ())
        if role.score > 0.4
        and amounts[role.index].value != 0
        and any(word in role.label.span.segment.folded.compact for word in _PAID)
    ]
    due = [
        role
        for role in others
        if any(word in role.label.span.segment.folded.compact for word in _DUE)
        and amounts[role.index].value != value
        and role.score > 0.5
    ]
    if due or (paid and any(word in best.label.span.segment.folded.compact for word in _DUE)):
        yield "amount_due_differs"

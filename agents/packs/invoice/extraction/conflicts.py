"""What on the page speaks against the chosen total: another total, words, sums, amounts paid or carried over."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from agents.packs.invoice.extraction.amounts import Amount
from agents.packs.invoice.extraction.roles import Role

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
PAID = (
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
"""Stems of labels for what was paid already."""
_EARLIER = (
    "previous",
    "prior",
    "forward",
    "lastbill",
    "laststatement",
    "pastdue",
    "overdue",
    "arrears",
    "vorherig",
    "altsaldo",
    "altersaldo",
    "anterieur",
    "anciensolde",
    "vorige",
    "anterior",
    "precedente",
    "上期",
)
"""Stems of labels for what is left of earlier bills."""


def conflicts(
    best: Role,
    proofs: Sequence[str],
    roles: Mapping[str, Sequence[Role]],
    amounts: Sequence[Amount],
    words: Decimal | None,
    net: Role | None,
    rivals: Sequence[tuple[Role, Sequence[str]]],
) -> Iterator[str]:
    """Codes of what speaks against the chosen total.

    Args:
        best: the chosen total.
        proofs: what confirms it.
        roles: every amount by the kind of its label.
        amounts: all amounts.
        words: the total as written in words, when present.
        net: the labelled net sum.
        rivals: the other candidates with what confirms them.
    """
    value = amounts[best.index].value
    others = [role for role, _ in rivals]
    if any(_equals(best, proofs, role, theirs, amounts) for role, theirs in rivals):
        yield "two_totals"
    earlier = _earlier_balance(roles, amounts)
    if earlier and _is_due(best) and "net_plus_tax" not in proofs:
        yield "earlier_balance_included"
    if words is not None and "words" not in proofs:
        yield "words_disagree"
    taxes = roles.get("tax", ())
    if not proofs and net and taxes and amounts[net.index].value != value:
        yield "sum_disagrees"
    if "net_plus_tax" in proofs and not any(
        _is_due(role) and amounts[role.index].value != value for role in others
    ):
        return
    paid = [
        role
        for role in roles.get("other_amount", ())
        if role.score > 0.4
        and amounts[role.index].value != 0
        and any(word in role.label.span.segment.folded.compact for word in PAID)
    ]
    if not earlier:
        # What was paid on an earlier balance takes nothing from this invoice.
        balances = {abs(amounts[role.index].value) for role in _balances(roles)}
        paid = [role for role in paid if abs(amounts[role.index].value) not in balances]
    due = [role for role in others if _is_due(role) and amounts[role.index].value != value and role.score > 0.5]
    if due or (paid and _is_due(best)):
        yield "amount_due_differs"


def _equals(
    best: Role, proofs: Sequence[str], other: Role, theirs: Sequence[str], amounts: Sequence[Amount]
) -> bool:
    """True when another amount has as good a claim to be the total: the same label, or sums that fit as well."""
    value, rival = amounts[best.index].value, amounts[other.index].value
    if rival in {0, value} or other.link_score < 0.6 or other.score < 0.4:
        return False
    if "net_plus_tax" in theirs and not other.label.qualified:
        return True
    same = other.label.span.text.strip(" :").casefold() == best.label.span.text.strip(" :").casefold()
    return same and "net_plus_tax" not in proofs


def _balances(roles: Mapping[str, Sequence[Role]]) -> list[Role]:
    return [
        role
        for role in roles.get("other_amount", ())
        if role.score > 0.4 and any(word in role.label.span.segment.folded.compact for word in _EARLIER)
    ]


def _earlier_balance(roles: Mapping[str, Sequence[Role]], amounts: Sequence[Amount]) -> bool:
    """True when a balance of earlier bills is carried into this one and not paid off."""
    paid = {
        abs(amounts[role.index].value)
        for role in roles.get("other_amount", ())
        if any(word in role.label.span.segment.folded.compact for word in PAID)
    }
    return any(
        amounts[role.index].value != 0 and abs(amounts[role.index].value) not in paid for role in _balances(roles)
    )


def _is_due(role: Role) -> bool:
    return any(word in role.label.span.segment.folded.compact for word in _DUE)

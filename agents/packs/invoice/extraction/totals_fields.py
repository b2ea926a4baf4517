"""From the reckoning of the amounts to the fields total, net and tax with their confidence."""

from collections.abc import Sequence
from decimal import Decimal

from agents.packs.invoice.extraction.amounts import Amount, printed
from agents.packs.invoice.extraction.confidence import Assessment, margin_factor, ocr_factor
from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.model import Alternative, Field
from agents.packs.invoice.extraction.roles import Role
from agents.packs.invoice.extraction.totals import Reckoning


def total_field(sheet: Sheet, amounts: Sequence[Amount], reckoning: Reckoning, places: int) -> Field:
    """The invoice total, or an absent field."""
    best = reckoning.total
    if best is None:
        return _unlabelled(amounts, places)
    amount = amounts[best.index]
    value = printed(amount.value, places)
    others = [(role, score) for role, score in reckoning.ranked[1:] if amounts[role.index].value != amount.value]
    note = Assessment()
    unnamed = best.label.kind != "total"
    note.doubt(0.75, "no_label", when=unnamed)
    note.doubt(0.93, "label_weak", when=best.label.strength < 0.8 and best.label.exact)
    note.doubt(0.88, "label_qualified", when=best.label.qualified)
    note.doubt(0.92, "label_misread", when=not best.label.exact)
    note.doubt(0.5 + 0.65 * best.link_score, "far_from_label", when=best.link_score < 0.75)
    note.doubt(
        0.8,
        "not_largest_amount",
        when=any(abs(other.value) > abs(amount.value) for other in amounts if other.looks_like_money)
        and not reckoning.proofs,
    )
    note.doubt(0.85, "no_decimals", when=not amount.looks_like_money and amount.decimals != places)
    note.doubt(0.55, "zero", when=amount.value == 0)
    note.doubt(margin_factor(reckoning.ranked[0][1], others[0][1] if others else 0.0), "close_alternative")
    note.doubt(0.6, "separators_ambiguous", when=amount.ambiguous)
    note.doubt(ocr_factor([amount.span.segment.line.confidence]), "ocr_unsure")
    note.doubt(0.9, "not_confirmed_by_sums", when=not reckoning.proofs)
    for conflict, factor in (
        ("words_disagree", 0.5),
        ("sum_disagrees", 0.7),
        ("amount_due_differs", 0.8),
        ("lines_disagree", 0.92),
    ):
        note.doubt(factor, conflict, when=conflict in reckoning.conflicts)
    for proof, share in (("net_plus_tax", 0.7), ("tax_table", 0.6), ("lines_sum", 0.5), ("words", 0.7)):
        note.support(share, proof, when=proof in reckoning.proofs)
    for conflict in ("two_totals", "earlier_balance_included"):
        # The sums speak for either reading, so that their support does not help.
        note.doubt(0.79, conflict, when=conflict in reckoning.conflicts)
    confidence = note.result()
    return Field(
        name="total",
        kind="amount",
        value=value,
        confidence=confidence,
        page=amount.span.segment.page,
        box=amount.span.box,
        source_text=amount.span.text,
        alternatives=_alternatives(amount, others, amounts, places, confidence),
        reasons=tuple(note.reasons),
    )


def _alternatives(
    amount: Amount, others: Sequence[tuple[Role, float]], amounts: Sequence[Amount], places: int, confidence: float
) -> tuple[Alternative, ...]:
    rest = min(confidence, 1 - confidence)
    ranked = [(value, amount) for value in amount.alternatives] + [
        (amounts[role.index].value, amounts[role.index]) for role, _ in others
    ]
    return tuple(
        Alternative(
            value=printed(value, places),
            confidence=rest,
            page=item.span.segment.page,
            box=item.span.box,
            source_text=item.span.text,
        )
        for value, item in ranked[:3]
    )


def _unlabelled(amounts: Sequence[Amount], places: int) -> Field:
    """Without any label the largest amount is offered for review."""
    money = [amount for amount in amounts if amount.looks_like_money and amount.decimals == places]
    if not money:
        return Field.absent("total", "amount", "no_total")
    largest = max(money, key=lambda amount: (abs(amount.value), amount.span.segment.y0))
    return Field(
        name="total",
        kind="amount",
        value=printed(largest.value, places),
        confidence=0.4,
        page=largest.span.segment.page,
        box=largest.span.box,
        source_text=largest.span.text,
        reasons=("no_label", "largest_amount"),
    )


def net_field(amounts: Sequence[Amount], reckoning: Reckoning, places: int) -> Field:
    """The sum before tax, or an absent field."""
    if reckoning.net is None:
        return Field.absent("net", "amount", "no_net")
    return _part_field("net", [reckoning.net], amounts, reckoning, places)


def tax_field(amounts: Sequence[Amount], reckoning: Reckoning, places: int) -> Field:
    """The tax; with several rates the value is their sum and the source shows each."""
    if not reckoning.taxes:
        return Field.absent("tax", "amount", "no_tax")
    return _part_field("tax", list(reckoning.taxes), amounts, reckoning, places)


def _part_field(
    name: str, roles: Sequence[Role], amounts: Sequence[Amount], reckoning: Reckoning, places: int
) -> Field:
    parts = [amounts[role.index] for role in roles]
    note = Assessment()
    note.doubt(
        0.5 + 0.5 * min(role.score for role in roles), "label_weak", when=min(role.score for role in roles) < 0.9
    )
    note.doubt(ocr_factor([part.span.segment.line.confidence for part in parts]), "ocr_unsure")
    note.doubt(0.6, "separators_ambiguous", when=any(part.ambiguous for part in parts))
    note.doubt(0.8, "not_confirmed_by_sums", when=not reckoning.parts_proven)
    note.support(0.7, "net_plus_tax", when=reckoning.parts_proven)
    note.doubt(0.79, "two_totals", when="two_totals" in reckoning.conflicts)
    boxes = [part.span.box for part in parts if part.span.segment.page == parts[0].span.segment.page]
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    return Field(
        name=name,
        kind="amount",
        value=printed(sum((part.value for part in parts), Decimal(0)), places),
        confidence=note.result(),
        page=parts[0].span.segment.page,
        box=(left, top, right - left, bottom - top),
        source_text="\n".join(part.span.text for part in parts),
        reasons=tuple(note.reasons),
    )

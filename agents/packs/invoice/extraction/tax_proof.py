"""Whether the page itself shows that the tax is the tax: by its rate, or by the sum that is left without it."""

from collections.abc import Sequence
from decimal import Decimal

from agents.packs.invoice.extraction.amounts import Amount, tolerance
from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.roles import Role

_LEAST_SCORE = 0.6
"""A tax that its label names less surely may be any amount that happens to fit."""


def is_shown(sheet: Sheet, total: Role, taxes: Sequence[Role], amounts: Sequence[Amount]) -> bool:
    """True when total less tax is printed, or the one tax is its printed rate's share of the total."""
    if not taxes or min(role.score for role in taxes) < _LEAST_SCORE:
        return False
    value = amounts[total.index].value
    tax = sum((amounts[role.index].value for role in taxes), Decimal(0))
    own = {total.index, *(role.index for role in taxes)}
    if not tax or 3 * abs(tax) >= abs(value):
        # No tax on sales takes a third of the total; the net sum taken for the tax would pass the first test.
        return False
    if any(
        amount.looks_like_money and abs(amount.value - (value - tax)) <= min(tolerance(value), tolerance(tax))
        for index, amount in enumerate(amounts)
        if index not in own
    ):
        return True
    return len(taxes) == 1 and any(
        abs(value * rate / (100 + rate) - tax) <= min(tolerance(value), tolerance(tax))
        for rate in _rates_beside(sheet, taxes[0], amounts)
    )


def _rates_beside(sheet: Sheet, tax: Role, amounts: Sequence[Amount]) -> list[Decimal]:
    row = sheet.row_of[amounts[tax.index].span.segment.index]
    return [
        amount.value
        for amount in amounts
        if amount.percent and sheet.row_of[amount.span.segment.index] == row and 0 < amount.value < 50
    ]

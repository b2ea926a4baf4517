"""Field extraction from the text lines of an invoice, on layouts never seen before.

`extract` finds number, dates, parties, currency, amounts and line items by what labels say, how values stand to
them and whether the sums agree; `verify_in_text` checks that a value is really printed at its box.
"""

from agents.packs.invoice.extraction.extract import extract
from agents.packs.invoice.extraction.model import REVIEW_THRESHOLD, Alternative, Extraction, Field, LineItem
from agents.packs.invoice.extraction.verify import verify_in_text, verify_value

__all__ = [
    "REVIEW_THRESHOLD",
    "Alternative",
    "Extraction",
    "Field",
    "LineItem",
    "extract",
    "verify_in_text",
    "verify_value",
]

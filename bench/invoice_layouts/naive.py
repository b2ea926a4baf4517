"""The baseline: the first match of a plain pattern per field on the page's joined text, always sure of itself."""

import datetime as dt
import re
from collections.abc import Sequence

from bench.invoice_layouts.answers import Answer, Answers
from tools.document.reading import DocumentReading, TextLine

_NUMBER = re.compile(
    r"(?:invoice|rechnung|rechnungs|facture|factuur|factura|发票)\W{0,3}(?:number|nummer|no|nr|num|n|#|号码|编号|号)?"
    r"[\s.:°ºo#：-]*([A-Z]{0,4}[-/]?\d[\w/.-]+)",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})|\b(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})\b")
_CURRENCY = re.compile(r"EUR|USD|GBP|CHF|CNY|JPY|SEK|PLN|MXN|AUD|CAD|SGD|HKD|DKK|€|£|\$|¥|￥|zł|kr")
_SYMBOLS = {"€": "EUR", "£": "GBP", "$": "USD", "¥": "CNY", "￥": "CNY", "zł": "PLN", "kr": "SEK"}
_AMOUNT = r"([\d][\d.,' ]*\d)"
_TOTAL = re.compile(
    rf"(?:total|gesamt\w*|betrag|net à payer|te betalen|totaal\w*|总计|总金额|合计)[^\d\n]*\n?[^\d\n]*{_AMOUNT}",
    re.IGNORECASE,
)
_TAX = re.compile(
    rf"(?:vat|mwst|ust|tva|btw|iva|tax|税额)[^\d\n]*(?:\d+[.,]?\d*\s*%)?[^\d\n]*\n?[^\d\n]*{_AMOUNT}",
    re.IGNORECASE,
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7} ?[A-Z0-9]{0,4}\b")
_BIC = re.compile(r"\b[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?\b")
_INCOTERM = re.compile(r"\b(EXW|FCA|FAS|FOB|CFR|CIF|CPT|CIP|DAP|DPU|DDP)\b")
_HS = re.compile(r"\b\d{4}[. ]?\d{2}(?:[. ]?\d{2})?\b")


def naive_answers(reading: DocumentReading) -> Answers:
    """First match wins; dates are day first, a mark followed by two figures is the decimal mark."""
    lines: Sequence[TextLine] = [line for page in reading.pages for line in page.lines]
    text = "\n".join(line.text for line in lines)
    dates = [date for date in (_iso(match) for match in _DATE.finditer(text)) if date]
    found: dict[str, str | None] = {
        "number": _first(_NUMBER, text),
        "date": dates[0] if dates else None,
        "due_date": dates[1] if len(dates) > 1 else None,
        "supplier": lines[0].text if lines else None,
        "currency": _currency(text),
        "total": _plain(_first(_TOTAL, text)),
        "tax": _plain(_first(_TAX, text)),
        "iban": _first(_IBAN, text, group=0),
        "bic": _first(_BIC, text, group=0),
        "incoterm": _first(_INCOTERM, text),
        "hs_codes": " ".join(re.sub(r"\D", "", code) for code in _HS.findall(text)) or None,
    }
    return Answers(
        fields={
            name: Answer(value=value, confidence=1.0, box=_place(lines, value))
            if value
            else Answer(value=None, confidence=0.0)
            for name, value in found.items()
        }
    )


def _first(pattern: re.Pattern[str], text: str, group: int = 1) -> str | None:
    match = pattern.search(text)
    return match.group(group) if match else None


def _iso(match: re.Match[str]) -> str | None:
    year, month, day, first, second, last = match.groups()
    if first:
        year, month, day = (last if len(last) == 4 else f"20{last}"), second, first
    try:
        return dt.date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _currency(text: str) -> str | None:
    mark = _first(_CURRENCY, text, group=0)
    return _SYMBOLS.get(mark, mark) if mark else None


def _plain(amount: str | None) -> str | None:
    if amount is None:
        return None
    digits = re.sub(r"[^\d]", "", amount)
    return f"{digits[:-2]}.{digits[-2:]}" if re.search(r"[.,]\d{2}$", amount) else digits


def _place(lines: Sequence[TextLine], value: str) -> tuple[int, int, int, int] | None:
    return next((line.box for line in lines if value in line.text), None)

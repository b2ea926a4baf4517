"""What the later checks need beside the core fields: IBAN, BIC, Incoterm, tariff codes, payment terms.

Values are handed on as printed, malformed ones too: whether they are valid is for the checks to say.
"""

import re
from collections.abc import Iterator, Sequence

from agents.packs.invoice.extraction.confidence import ocr_factor
from agents.packs.invoice.extraction.frame import Segment, Sheet, Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.model import Field

_IBAN = re.compile(
    r"(?<![a-z0-9])(?:iban\s?(?:no\.?|nr\.?|code)?\s?[:.]?\s?)?((?:ad|ae|at|ba|be|bg|ch|cy|cz|de|dk|ee|es|fi|fr|gb|gr|hr|hu|ie|is|it|li|lt|lu|lv|mc|mt|nl|no|pl|pt|ro|rs|sa|se|si|sk|sm|tr)"
    r"\s?[0-9oil]{2}(?:[ .-]?[a-z0-9]{2,4}){2,7}(?:[ .-]?[a-z0-9]{1,4})?)(?![a-z0-9])"
)
_IBAN_LENGTH = {
    "AD": 24,
    "AE": 23,
    "AT": 20,
    "BA": 20,
    "BE": 16,
    "BG": 22,
    "CH": 21,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "EE": 20,
    "ES": 24,
    "FI": 18,
    "FR": 27,
    "GB": 22,
    "GR": 27,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IS": 26,
    "IT": 27,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MC": 27,
    "MT": 31,
    "NL": 18,
    "NO": 15,
    "PL": 28,
    "PT": 25,
    "RO": 24,
    "RS": 22,
    "SA": 24,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "TR": 26,
}
_BIC_LABEL = re.compile(r"(?:bic|swift)(?:\s?/\s?swift)?(?:\s?-?\s?(?:code|bic))?\s?[:.]?\s?")
_BIC = re.compile(r"(?<![A-Z0-9])[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?(?![A-Z0-9])")
_TERMS = "EXW|FCA|FAS|FOB|CFR|CIF|CPT|CIP|DAP|DPU|DDP|DAT|DAF|DES|DEQ|DDU|CNF|C&F"
_INCOTERM = re.compile(
    rf"(?<![A-Za-z])({_TERMS})(?![A-Za-z])(?:[ ,:]*(?:\(([^()]{{2,30}})\)"
    r"|([A-ZÀ-Þ][\w'’.-]*(?: [A-ZÀ-Þ][\w'’.-]*){0,3}|[一-鿿]{2,8})))?"
)
_TAX_ID = re.compile(r"[ :.]*[A-Z]?-?\d{5,}")
"""Behind CIF a Spanish tax number may follow; then it is no Incoterm."""
_HS_AFTER = re.compile(r"^\s?[:：.#]?\s?(\d[\d. ]{2,14}\d)(?!\d)")
_HS_CELL = re.compile(r"(?<![\d.,])(\d{4}[. ]?\d{2}(?:[. ]?\d{2}){0,2}|\d{6,10})(?![\d.,])")


def read_trade(sheet: Sheet, labels: Sequence[Label]) -> dict[str, Field]:
    """IBAN, BIC, Incoterm and payment terms by name, each found or absent."""
    return {
        "iban": next(_ibans(sheet), None) or Field.absent("iban", "text", "no_iban"),
        "bic": _bic(sheet) or Field.absent("bic", "text", "no_bic"),
        "incoterm": _incoterm(sheet, labels) or Field.absent("incoterm", "text", "no_incoterm"),
        "payment_terms": _terms(sheet, labels) or Field.absent("payment_terms", "text", "no_terms"),
    }


def text_field(
    name: str, segment: Segment, start: int, end: int, confidence: float, value: str | None = None
) -> Field:
    """A field whose value is the text at its place."""
    span = Span(segment=segment, start=start, end=end)
    factor = ocr_factor([segment.line.confidence])
    reasons = ("ocr_unsure",) if factor < 1 else ()
    return Field(
        name=name,
        kind="text",
        value=value or span.text.strip(),
        confidence=confidence * factor,
        page=segment.page,
        box=span.box,
        source_text=span.text,
        reasons=reasons,
    )


def account_spans(sheet: Sheet) -> list[Span]:
    """Where account numbers stand: their digits are no amounts and no identifiers."""
    return [
        Span(segment=segment, start=start, end=end)
        for segment in sheet.segments
        for start, end, _ in _iban_matches(segment)
    ]


def _iban_matches(segment: Segment) -> Iterator[tuple[int, int, str]]:
    plain = segment.folded.plain
    for match in _IBAN.finditer(plain):
        labelled = "iban" in plain[: match.start(1)]
        start, end = match.span(1)
        wanted = _IBAN_LENGTH[plain[start : start + 2].upper()]
        # The pattern may run on into the next word; stop where the country's length is reached.
        count, stop = 0, end
        for position in range(start, end):
            count += plain[position].isalnum()
            if count == wanted:
                stop = position + 1
                break
        boundary = stop >= len(plain) or not plain[stop].isalnum() or stop == end
        stop = stop if boundary or labelled else end
        size = sum(char.isalnum() for char in plain[start:stop])
        digits = sum(char.isdigit() for char in plain[start:stop])
        # One sign too many or too few is still meant as an account number; the check will say that it is wrong.
        if digits >= 8 and (abs(size - wanted) <= 1 or labelled):
            first, last = segment.folded.span(start, stop)
            yield first, last, segment.text[first:last]


def _ibans(sheet: Sheet) -> Iterator[Field]:
    for segment in sheet.segments:
        for start, end, text in _iban_matches(segment):
            yield text_field("iban", segment, start, end, 0.95, re.sub(r"[\s.-]", "", text).upper())


def _bic(sheet: Sheet) -> Field | None:
    for segment in sheet.segments:
        label = _BIC_LABEL.search(segment.folded.plain)
        if label is None:
            continue
        rest = segment.folded.plain_at[label.end() - 1] + 1
        match = _BIC.search(segment.text, rest) or _BIC.search(segment.text.upper(), rest)
        if match:
            return text_field("bic", segment, *match.span(), 0.95)
        row = sheet.rows[sheet.row_of[segment.index]]
        for other in (item for item in row if item.x0 >= segment.x1 - 2):
            match = _BIC.match(other.text.strip())
            if match:
                return text_field(
                    "bic",
                    other,
                    other.text.index(match.group()),
                    other.text.index(match.group()) + len(match.group()),
                    0.9,
                )
    return None


def _incoterm(sheet: Sheet, labels: Sequence[Label]) -> Field | None:
    labelled_rows = {
        sheet.row_of[label.segment.index] + step for label in labels if label.kind == "incoterm" for step in (0, 1)
    }
    best: Field | None = None
    for segment in sheet.segments:
        for match in _INCOTERM.finditer(segment.text):
            if _TAX_ID.match(segment.text[match.end(1) :]):
                continue
            place = match[2] or match[3]
            labelled = sheet.row_of[segment.index] in labelled_rows or "incoterm" in segment.folded.compact
            confidence = 0.95 if labelled else 0.85 if place else 0.6
            value = f"{match[1]} {place}" if place else match[1]
            if best is None or confidence > best.confidence:
                best = text_field("incoterm", segment, *match.span(), confidence, value)
    return best


def _terms(sheet: Sheet, labels: Sequence[Label]) -> Field | None:
    for label in labels:
        if label.kind != "terms":
            continue
        segment = label.segment
        rest = segment.text[label.span.end :]
        body = rest.strip(" :：.-")
        if len(body) > 2:
            start = label.span.end + rest.index(body)
            return text_field("payment_terms", segment, start, start + len(body), 0.9)
        row = [other for other in sheet.rows[sheet.row_of[segment.index]] if other.x0 > segment.x1 - 2]
        below = [
            other
            for other in sheet.segments
            if 0 <= other.y0 - segment.y1 < sheet.unit and abs(other.x0 - segment.x0) < 2 * sheet.unit
        ]
        for other in [*row[:1], *below[:1]]:
            if not any(item.segment is other for item in labels if item.kind not in {"due", "terms"}):
                return text_field("payment_terms", other, 0, len(other.text), 0.8)
    pattern = re.compile(
        r"\b(?:net \d{1,3}(?: days)?|\d{1,3} (?:days|tage|jours|dagen|dias)\b.{0,20}|due (?:up)?on receipt)"
        r"|月结\d+天|\d+天内付款"
    )
    for segment in sheet.segments:
        match = pattern.search(segment.folded.plain)
        if match:
            return text_field("payment_terms", segment, *segment.folded.span(*match.span()), 0.75)
    return None


def read_hs_codes(sheet: Sheet, labels: Sequence[Label]) -> tuple[Field, ...]:
    """Tariff codes beside or under their labels, as printed."""
    found: dict[tuple[int, int], Field] = {}
    for label in labels:
        if label.kind != "hs":
            continue
        segment = label.segment
        match = _HS_AFTER.match(segment.text[label.span.end :])
        if match:
            start = label.span.end + match.start(1)
            found[segment.index, start] = text_field(
                "hs_code", segment, start, start + len(match[1].rstrip()), 0.93
            )
            continue
        for other, start, end in _cells_of(sheet, label):
            found.setdefault((other.index, start), text_field("hs_code", other, start, end, 0.88))
    return tuple(found[key] for key in sorted(found))


def _cells_of(sheet: Sheet, label: Label) -> Iterator[tuple[Segment, int, int]]:
    """Codes right of the label, or in the column below it."""
    row = [other for other in sheet.rows[sheet.row_of[label.segment.index]] if other.x0 > label.span.x1 - 2]
    for other in row[:1]:
        match = _HS_CELL.search(other.text)
        if match:
            yield other, *match.span(1)
            return
    for other in sheet.segments:
        overlaps = min(other.x1, label.span.x1 + sheet.unit) - max(other.x0, label.span.x0 - sheet.unit) > 0
        if (
            other.page == label.segment.page
            and other.y0 > label.segment.y0
            and other.y0 - label.segment.y1 < 40 * sheet.unit
            and overlaps
        ):
            for match in _HS_CELL.finditer(other.text):
                span = Span(segment=other, start=match.start(1), end=match.end(1))
                if min(span.x1, label.span.x1 + sheet.unit) - max(span.x0, label.span.x0 - sheet.unit) > 0:
                    yield other, *match.span(1)

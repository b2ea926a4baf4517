"""Who sends the invoice and who is to pay it."""

import re
from collections.abc import Sequence

from agents.packs.invoice.extraction.confidence import Assessment, margin_factor, ocr_factor
from agents.packs.invoice.extraction.folding import compacted
from agents.packs.invoice.extraction.frame import Segment, Sheet, Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.model import Alternative, Field
from agents.packs.invoice.extraction.relation import Neighbours

_LEGAL_FORM = re.compile(
    r"(?<![a-z0-9])(?:gmbh|mbh|ag|kg|ohg|e\.?\s?k\.?|gbr|ug|ltd|limited|llc|llp|inc|corp|corporation|plc|co\.|company"
    r"|b\.?\s?v\.?|n\.?\s?v\.?|v\.?o\.?f\.?|s\.?\s?a\.?|s\.?a\.?s\.?|sasu|s\.?a\.?r\.?l\.?|eurl|sci|s\.?\s?l\.?\s?u?\.?"
    r"|s\.?r\.?l\.?|s\.?p\.?a\.?|lda|pty|oy|(?<!\d )ab|a/s"
    r"|aps|sp\. z o\.?\s?o\.?|kft|s\.r\.o\.|pte|bhd|sdn|gesellschaft)(?![a-z])"
    r"|公司|厂|商行|集团|株式会社|事务所|经营部|中心|店"
)
_FORM_END = re.compile(
    r"(?<=\bLimited)[,.]\s|(?<=\bLtd)[,.]\s|(?<=\bGmbH)[,.]\s|(?<=\bInc)[,.]\s|(?<=\bLLC)[,.]\s|(?<=\bS\.A\.S),\s"
    r"|(?<=\bS\.r\.l\.),\s|(?<=\bS\.L\.),\s|(?<=\bB\.V\.),\s|(?<=\bAG),\s|(?<=\bplc)[,.]\s|(?<=\bSAS),\s"
)
_STREET = re.compile(
    r"\d|stra(?:ss|ß)e|str\.|weg\b|platz|street|road|avenue|\bav\.|\brue\b|calle|laan\b|straat|路|号|街"
)
_CONTACT = re.compile(
    r"@|capital|siret|\brcs\b|registergericht|amtsgericht|handelsregister|www\.|https?:"
    r"|\btel|\bfax|phone|\biban\b|\bbic\b|telefon|电话"
)

_HEAD = 0.25
"""Share of the page's height that a letterhead stands in."""
_LOGO = 0.12


def choose_parties(sheet: Sheet, labels: Sequence[Label], neighbours: Neighbours) -> tuple[Field, Field]:
    """Supplier and buyer as printed, each with its confidence or absent."""
    names = [span for segment in sheet.segments for span in _name_spans(segment, labels)]
    buyer_scores = {index: _labelled(span, "buyer", labels, neighbours) for index, span in enumerate(names)}
    supplier_scores = {
        index: _supplier_score(sheet, span, labels, neighbours) - 1.2 * buyer_scores[index]
        for index, span in enumerate(names)
    }
    supplier = _field(sheet, "supplier", names, supplier_scores, 0.2)
    if supplier.value is not None:
        known = compacted(supplier.value)
        buyer_scores = {
            index: score for index, score in buyer_scores.items() if compacted(names[index].text) != known
        }
    return supplier, _field(sheet, "buyer", names, buyer_scores, 0.3)


def _name_spans(segment: Segment, labels: Sequence[Label]) -> list[Span]:
    """The part of the segment that may be a name: behind a party's label, or the whole line up to a separator."""
    own = [label for label in labels if label.segment is segment]
    start = max(
        (label.span.end for label in own if label.kind in {"supplier", "buyer"} and label.span.start <= 3),
        default=0,
    )
    text = segment.text
    while start < len(text) and text[start] in " :：.,-（(":
        start += 1
    cut = re.search(r"\s[·•|]\s?|[·•|]|,\s(?=\d|[A-Z][a-z]+(?:stra|str|weg))|\s-\s", text[start:])
    end = start + cut.start() if cut else len(text)
    # "Alder Limited, Judd House, London": the name ends with its legal form.
    form = _FORM_END.search(text[start:end])
    end = start + form.start() if form else end
    body = text[start:end].strip()
    others = [
        label for label in own if label.kind not in {"supplier", "buyer", "column"} and label.span.start >= start
    ]
    if (
        text[start : start + 1] == "/"
        or sum(char.isalpha() for char in body) < 3
        or (others and not _LEGAL_FORM.search(segment.folded.plain))
    ):
        return []
    end = start + len(text[start:end].rstrip())
    return [Span(segment=segment, start=start, end=end)] if end > start else []


def _labelled(span: Span, kind: str, labels: Sequence[Label], neighbours: Neighbours) -> float:
    best = 0.0
    for label in labels:
        if label.kind != kind or label.is_head:
            continue
        link = neighbours.link(label, span)
        if link is not None and link.place in {"same", "right", "below"}:
            best = max(best, link.score * label.strength * (1.0 if label.alone or link.place == "same" else 0.6))
    return best


def _supplier_score(sheet: Sheet, span: Span, labels: Sequence[Label], neighbours: Neighbours) -> float:
    segment = span.segment
    plain = segment.folded.plain
    legal = bool(_LEGAL_FORM.search(plain))
    depth = (segment.y0 - sheet.top) / max(sheet.bottom - sheet.top, 1.0)
    wanted = compacted(span.text)
    repeats = (
        sum(wanted in other.folded.compact for other in sheet.segments if other is not segment)
        if len(wanted) > 5
        else 0
    )
    score = 0.9 * _labelled(span, "supplier", labels, neighbours)
    # A text without a legal form that comes again further down is a town or a kind of goods.
    told = 1.0 if legal else 0.5 if depth < _HEAD else 0.0
    score += 0.35 * legal + 0.3 * min(repeats, 2) * told / 1.5
    score += 0.3 * max(0.0, 1 - depth / _HEAD) + 0.15 * min(1.0, max(0.0, segment.height / sheet.unit - 1.1) * 2)
    score += 0.15 * (depth > 0.85 and legal)
    # A logo: larger than the text, at the very top, and named again in an address, a footer or a payment slip.
    score += 0.25 * (depth < _LOGO and segment.height > 1.3 * sheet.unit and repeats > 0)
    score -= 0.5 * bool(_CONTACT.search(plain)) + 0.25 * bool(_STREET.search(plain) and not legal)
    score -= 0.4 * (len(span.text.split()) > 7 or len(span.text) > 60) + 0.6 * any(
        label.segment is segment and label.kind in {"title", "number", "date", "total", "column"} and not legal
        for label in labels
    )
    return score


def _field(sheet: Sheet, name: str, names: Sequence[Span], scores: dict[int, float], floor: float) -> Field:
    ranked = sorted(
        (index for index in scores if scores[index] > floor),
        key=lambda index: (-scores[index], names[index].segment.y0),
    )
    if not ranked:
        return Field.absent(name, "text", f"no_{name}")
    best = names[ranked[0]]
    others = [index for index in ranked[1:] if compacted(names[index].text) != compacted(best.text)]
    note = Assessment(value=0.95)
    note.doubt(0.45 + 0.55 * min(1.0, scores[ranked[0]] / 0.75), "weak_evidence", when=scores[ranked[0]] < 0.75)
    note.doubt(margin_factor(scores[ranked[0]], scores[others[0]] if others else 0.0), "close_alternative")
    note.doubt(0.9, "no_legal_form", when=not _LEGAL_FORM.search(best.segment.folded.plain))
    note.doubt(ocr_factor([best.segment.line.confidence]), "ocr_unsure")
    confidence = note.result()
    return Field(
        name=name,
        kind="text",
        value=best.text.strip(),
        confidence=confidence,
        page=best.segment.page,
        box=best.box,
        source_text=best.text.strip(),
        alternatives=tuple(
            Alternative(
                value=names[index].text.strip(),
                confidence=min(confidence, 1 - confidence),
                page=names[index].segment.page,
                box=names[index].box,
                source_text=names[index].text.strip(),
            )
            for index in others[:3]
        ),
        reasons=tuple(note.reasons),
    )

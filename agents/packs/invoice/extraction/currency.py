"""The currency, from the marks beside the amounts; an ambiguous mark is read with the page's countries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.packs.invoice.extraction.amounts import Amount
from agents.packs.invoice.extraction.confidence import Assessment, ocr_factor
from agents.packs.invoice.extraction.evidence import Setting
from agents.packs.invoice.extraction.frame import Segment, Sheet, Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.marks import CODES, COUNTRY_CURRENCY, MARK, SYMBOLS, meanings
from agents.packs.invoice.extraction.model import Alternative, Field

_CONVERSION = re.compile(
    r"[=≈]|equivalent|exchange|conversion|umgerechnet|gegenwert|kurs|cours|contre-?valeur|tegenwaarde|cambio|汇率|折合"
)
"""A line that converts the total names a currency that is not the invoice's."""
_PLAIN_WORDS = frozenset(
    {
        "try",
        "all",
        "cop",
        "pen",
        "mad",
        "sar",
        "inr",
        "fr.",
        "kr",
        "kr.",
        "lei",
        "euro",
        "euros",
        "dollars",
        "pesos",
        "franken",
        "kc",
        "rs",
        "rs.",
        "php",
        "yuan",
        "r$",
        "s/",
    }
)
"""Marks that are words or endings too; they count only beside an amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    span: Span
    mark: str
    weight: float
    place: str


def choose_currency(
    sheet: Sheet, labels: Sequence[Label], amounts: Sequence[Amount], total_index: int | None, setting: Setting
) -> Field:
    """The currency of the total, or an absent field."""
    signs = list(_signs(sheet, labels, amounts, total_index))
    if not signs:
        return _from_country(sheet, setting)
    scores, sources = _scores(signs, setting)
    ranked = sorted(scores, key=lambda code: -scores[code])
    code = ranked[0]
    source = sources[code]
    whole = sum(scores.values())
    share = scores[code] / whole if whole else 0.0
    total_marks = {sign.mark for sign in signs if sign.place == "total"}
    spoken = {other for sign in signs for other in meanings(sign.mark) if len(meanings(sign.mark)) == 1}
    note = Assessment()
    if len(meanings(source.mark)) > 1 and code not in spoken:
        note.doubt(_belief(source.mark, code, setting), "mark_has_several_meanings")
    if share < 0.8:
        beside_total = any(code in meanings(mark) for mark in total_marks)
        note.doubt(0.92 if beside_total and share > 0.5 else 0.5 + 0.5 * share, "several_currencies")
    note.doubt(0.8, "total_in_another_currency", when=_other_total(sheet, labels, signs, code))
    note.doubt(0.75, "country_speaks_against", when=_against(source.mark, code, signs, setting))
    note.doubt(0.85, "mark_not_beside_amount", when=source.place == "cell" and not total_marks)
    note.doubt(0.75, "mark_in_sentence", when=source.place == "text" and not total_marks)
    note.doubt(max(0.6, ocr_factor([source.span.segment.line.confidence])), "ocr_unsure", when=scores[code] < 1.5)
    note.support(0.5, "mark_repeated", when=sum(code in meanings(sign.mark) for sign in signs) > 2 and share > 0.8)
    confidence = note.result()
    return Field(
        name="currency",
        kind="currency",
        value=code,
        confidence=confidence,
        page=source.span.segment.page,
        box=source.span.box,
        source_text=source.span.text,
        alternatives=tuple(
            Alternative(
                value=other,
                confidence=min(confidence, 1 - confidence),
                page=sources[other].span.segment.page,
                box=sources[other].span.box,
                source_text=sources[other].span.text,
            )
            for other in ranked[1:4]
        ),
        reasons=tuple(note.reasons),
    )


def _signs(
    sheet: Sheet, labels: Sequence[Label], amounts: Sequence[Amount], total_index: int | None
) -> Iterator[_Sign]:
    seen: set[tuple[int, int]] = set()
    total = amounts[total_index] if total_index is not None else None
    total_row = sheet.row_of[total.span.segment.index] if total else -1
    for amount in amounts:
        if amount.mark_span is None:
            continue
        seen.add((amount.mark_span.segment.index, amount.mark_span.start))
        is_total = amount is total
        if not is_total and _CONVERSION.search(amount.span.segment.folded.plain):
            continue
        # "An indemnity of 40 € is due": a mark in a sentence is not the mark of the invoice's amounts.
        spoken = not is_total and amount.decimals == 0 and len(amount.span.segment.text.split()) > 4
        yield _Sign(
            span=amount.mark_span,
            mark=amount.mark,
            weight=3.0 if is_total else 0.3 if spoken else 1.0 if amount.decimals else 0.5,
            place="total" if is_total else "text" if spoken else "amount",
        )
    currency_rows = {label.segment.index for label in labels if label.kind == "currency"}
    near_labels = currency_rows | {
        other.index for label in labels if label.kind == "currency" for other in _next_to(sheet, label)
    }
    for segment in sheet.segments:
        if _CONVERSION.search(segment.folded.plain) and sheet.row_of[segment.index] != total_row:
            continue
        for match in MARK.finditer(segment.folded.plain):
            first, last = segment.folded.span(*match.span())
            if (segment.index, first) in seen:
                continue
            in_total_row = sheet.row_of[segment.index] == total_row
            labelled = segment.index in near_labels
            printed = segment.text[first:last]
            spelled = "in euro" in segment.folded.plain
            if match.group() in _PLAIN_WORDS and not (labelled or in_total_row or spelled):
                continue
            if match.group().upper() in CODES and not printed.isupper() and not labelled:
                continue
            # A head or a cell of its own says more than a mark within a sentence.
            lone = ("cell", 0.4) if len(segment.text.split()) <= 4 else ("text", 0.3)
            place, weight = ("total", 2.5) if in_total_row else ("label", 2.5) if labelled else lone
            yield _Sign(
                span=Span(segment=segment, start=first, end=last), mark=match.group(), weight=weight, place=place
            )


def _other_total(sheet: Sheet, labels: Sequence[Label], signs: Sequence[_Sign], code: str) -> bool:
    """True when a row with a total's label shows the mark of another currency."""
    rows = {sheet.row_of[label.segment.index] for label in labels if label.kind == "total" and not label.is_head}
    return any(
        code not in meanings(sign.mark) and sheet.row_of[sign.span.segment.index] in rows
        for sign in signs
        if sign.place != "text"
    )


def _against(mark: str, code: str, signs: Sequence[_Sign], setting: Setting) -> bool:
    """True when an ambiguous mark beside the amounts means something else in the page's country."""
    loose = [sign.mark for sign in signs if sign.place in {"total", "amount"} and len(meanings(sign.mark)) > 1]
    return any(
        _likeliest(other, setting) != code and code in meanings(other)
        for other in {mark, *loose}
        if other in loose
    )


def _next_to(sheet: Sheet, label: Label) -> Iterator[Segment]:
    row = sheet.rows[sheet.row_of[label.segment.index]]
    following = [segment for segment in row if segment.x0 > label.span.x1]
    yield from following[:1]
    for segment in sheet.segments:
        if (
            0 <= segment.y0 - label.segment.y1 < 1.2 * sheet.unit
            and abs(segment.x0 - label.span.x0) < 1.5 * sheet.unit
        ):
            yield segment


def _scores(signs: Sequence[_Sign], setting: Setting) -> tuple[dict[str, float], dict[str, _Sign]]:
    scores: dict[str, float] = {}
    sources: dict[str, _Sign] = {}
    certain = {meanings(sign.mark)[0] for sign in signs if len(meanings(sign.mark)) == 1 and sign.weight >= 1.0}
    for sign in signs:
        options = meanings(sign.mark)
        agreed = [code for code in options if code in certain]
        code = agreed[0] if agreed else _likeliest(sign.mark, setting)
        scores[code] = scores.get(code, 0.0) + sign.weight
        if code not in sources or sign.weight > sources[code].weight:
            sources[code] = sign
    return scores, sources


def _weights(mark: str, setting: Setting) -> dict[str, float]:
    """Belief in each meaning of a mark: a prior by how common it is, and the countries on the page."""
    options = meanings(mark)
    prior = {code: 1.0 if index == 0 else 0.05 for index, code in enumerate(options)}
    if "¥" in mark:
        chinese, japanese = setting.languages.get("zh", 0.0), setting.languages.get("ja", 0.0)
        prior = {"CNY": 0.5 + 8 * max(0.0, chinese - 3 * japanese), "JPY": 0.5 + 12 * japanese}
    if mark == "$":
        # A dollar on a Spanish page is seldom the American one unless the page says so.
        prior["USD"] = 1.0 if setting.language != "es" else 0.5
    if mark.startswith("kr"):
        prior = dict.fromkeys(options, 0.4)
    for country, weight in setting.countries.items():
        code = COUNTRY_CURRENCY.get(country)
        if code in prior:
            prior[code] += 2.0 * weight
    return prior


def _likeliest(mark: str, setting: Setting) -> str:
    weights = _weights(mark, setting)
    return max(weights, key=lambda code: weights[code])


def _belief(mark: str, code: str, setting: Setting) -> float:
    weights = _weights(mark, setting)
    share = weights.get(code, 0.0) / (sum(weights.values()) or 1.0)
    return min(1.0, 0.35 + 0.72 * share)


def _from_country(sheet: Sheet, setting: Setting) -> Field:
    """No mark is printed, or the OCR lost it: the countries on the page suggest one, for review."""
    votes: dict[str, float] = {}
    for country, weight in setting.countries.items():
        if country in setting.country_spans and country in COUNTRY_CURRENCY:
            votes[COUNTRY_CURRENCY[country]] = votes.get(COUNTRY_CURRENCY[country], 0.0) + weight
    if not votes:
        return Field.absent("currency", "currency", "no_currency_mark")
    code = max(votes, key=lambda name: votes[name])
    country = max(
        (name for name in setting.country_spans if COUNTRY_CURRENCY.get(name) == code),
        key=lambda name: setting.countries[name],
    )
    index, start, end = setting.country_spans[country]
    span = Span(segment=sheet.segments[index], start=start, end=end)
    return Field(
        name="currency",
        kind="currency",
        value=code,
        confidence=0.6 * votes[code] / sum(votes.values()),
        page=span.segment.page,
        box=span.box,
        source_text=span.text,
        reasons=("no_currency_mark", "from_country"),
    )


def currencies_in(text: str) -> Mapping[str, str]:
    """Every currency that a mark in folded `text` can mean, with the mark."""
    return {code: match.group() for match in MARK.finditer(text) for code in (meanings(match.group()) or ())} | {
        code: mark for mark, codes in SYMBOLS.items() if mark in text for code in codes
    }

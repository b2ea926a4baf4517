"""The invoice date and the due date among all dates of the page."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence

from agents.packs.invoice.extraction.confidence import Assessment, margin_factor, ocr_factor
from agents.packs.invoice.extraction.contest import Claim, contest
from agents.packs.invoice.extraction.dates import DateFound
from agents.packs.invoice.extraction.frame import Segment, Sheet
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.model import Alternative, Field
from agents.packs.invoice.extraction.relation import Link, Neighbours

_KINDS = frozenset({"date", "due", "other_date", "number", "other_id"})
_EARLIEST, _LATEST = dt.date(1995, 1, 1), dt.date(2040, 1, 1)
_CREDIT = (
    "creditnote",
    "creditmemo",
    "gutschrift",
    "avoir",
    "creditnota",
    "creditfactuur",
    "rectificativa",
    "notadicredito",
)
_ORIGINAL = (
    "invoicedate",
    "rechnungsdatum",
    "dateoffacture",
    "datedefacture",
    "factuurdatum",
    "fechadefactura",
    "original",
)
_PLACE = re.compile(r"[A-ZÀ-Þ][^\d,:]{2,25}(?:,|\s)\s?(?:den|der|le|the|de|op|a|am|on)?")
_OF = re.compile(r"(?:^|\s)(?:vom|du|del|van|dated|le|d\.d\.|of|den|de fecha)$", re.IGNORECASE)
_TIME = re.compile(r"[,/-]?\s?\d{1,2}[:.]\d\d")
_DISCOUNT = re.compile(r"skonto|discount|\bdisc\b|escompte|korting|descuento|sconto|abzuglich|折扣")
_NO_DISCOUNT = re.compile(
    r"(?:ohne|kein(?:en)?|no|without|less|sans|zonder|sin)\s(?:\w+\s)?(?:skonto|abzug|discount|escompte|korting)"
)
_CLAUSE = re.compile(r"[;.]\s|,\s|\bsonst\b|\bdanach\b|\botherwise\b|\bthereafter\b|\bsinon\b|\banders\b")
_TERM_DAYS = re.compile(r"(?<!\d)(\d{1,3})\s?(?:days?|tagen?|jours?|dagen|dias|giorni|天|日内)")


def choose_dates(
    sheet: Sheet, labels: Sequence[Label], dates: Sequence[DateFound], neighbours: Neighbours
) -> tuple[Field, Field]:
    """The invoice date and the due date, each with its confidence or absent."""
    contenders = [label for label in labels if label.kind in _KINDS and not label.is_head]

    credit = any(
        label.kind == "title" and any(word in label.segment.folded.compact for word in _CREDIT) for label in labels
    )

    def worth(label: Label, index: int, link: Link) -> float:
        date = dates[index]
        if credit and label.kind == "date" and any(word in label.segment.folded.compact for word in _ORIGINAL):
            # A credit note shows the date of the invoice it corrects, too.
            return 0.5
        if label.kind == "due" and _grants_discount(date):
            # The day up to which less may be paid is not the day on which all is due.
            return 0.4
        if label.kind in {"number", "other_id"}:
            # A number's label may be followed by its date; it keeps eight-digit numbers from being dates.
            return 0.9 if date.style == "bare" else 0.35 if link.place == "same" and link.score < 0.9 else 0.0
        return 0.8 if date.style == "bare" else 1.0

    claims = contest(contenders, [date.span for date in dates], neighbours, worth)
    issued = _pick("date", claims.get("date", ()), dates, sheet)
    due_claims = [claim for claim in claims.get("due", ()) if issued is None or claim.value != issued[0].value]
    due = _pick("due", due_claims, dates, sheet)
    if issued is None:
        return _unlabelled(claims, dates, labels, sheet), _field("due_date", due, dates, None, sheet)
    return _field("date", issued, dates, due, sheet), _field("due_date", due, dates, issued, sheet)


def in_order(issued: Field, due: Field) -> int:
    """How well an invoice date and a due date fit: 2 when printed terms agree, 1 in order, 0 unknown, -1 not."""
    if issued.value is None or due.value is None:
        return 0
    if "due_date_out_of_order" in issued.reasons or "due_date_out_of_order" in due.reasons:
        return -1
    return 2 if "terms_agree" in issued.reasons else 1


Picked = tuple[Claim, Sequence[Claim]]


def _pick(kind: str, claims: Sequence[Claim], dates: Sequence[DateFound], sheet: Sheet) -> Picked | None:
    usable = [claim for claim in claims if claim.standing > (0.12 if kind == "date" else 0.3)]
    if not usable:
        return None
    # Of equally good ones the higher on the page is the invoice's own.
    ranked = sorted(usable, key=lambda claim: -(claim.standing - 0.00005 * _depth(dates[claim.value], sheet)))
    return ranked[0], [claim for claim in ranked[1:] if dates[claim.value].day != dates[ranked[0].value].day]


def _grants_discount(date: DateFound) -> bool:
    """True when the clause that the date stands in speaks of a discount."""
    segment = date.span.segment
    plain, at = segment.folded.plain, segment.folded.plain_at
    first = next((index for index, place in enumerate(at) if place >= date.span.start), 0)
    last = next((index for index, place in enumerate(at) if place >= date.span.end), len(plain))
    start = max((match.end() for match in _CLAUSE.finditer(plain, 0, first)), default=0)
    end = next((match.start() for match in _CLAUSE.finditer(plain, last)), len(plain))
    clause = plain[start:end]
    return bool(_DISCOUNT.search(clause)) and not _NO_DISCOUNT.search(clause)


def _depth(date: DateFound, sheet: Sheet) -> float:
    return (date.span.segment.y0 - sheet.top) / sheet.unit


def _field(
    name: str, picked: Picked | None, dates: Sequence[DateFound], partner: Picked | None, sheet: Sheet
) -> Field:
    if picked is None:
        return Field.absent(name, "date", "no_labelled_date")
    best, others = picked
    date = dates[best.value]
    label = best.link.label
    note = Assessment()
    note.doubt(0.93, "label_weak", when=label.strength < 0.8 and label.exact)
    note.doubt(0.93, "label_misread", when=not label.exact)
    note.doubt(0.85, "label_qualified", when=label.qualified)
    note.doubt(0.6, "discount_date", when=name == "due_date" and _grants_discount(date))
    note.doubt(0.55 + 0.6 * best.link.score, "far_from_label", when=best.link.score < 0.72)
    note.doubt(0.6, "claimed_by_other_label", when=best.rival > best.score)
    note.doubt(0.8, "not_first_choice_of_label", when=not best.owned)
    note.doubt(margin_factor(best.standing, others[0].standing if others else 0.0), "close_alternative")
    _doubt_date(note, date)
    if partner is not None:
        _compare(note, name, date.day, dates[partner[0].value].day, sheet)
    return _as_field(name, date, note, [dates[claim.value] for claim in others[:3]])


def _doubt_date(note: Assessment, date: DateFound) -> None:
    note.doubt(max(0.3, date.certainty), "day_month_order", when=date.certainty < 0.97)
    note.doubt(0.78, "digit_lost", when=date.torn)
    note.doubt(0.5, "implausible_year", when=not _EARLIEST <= date.day <= _LATEST)
    note.doubt(0.9, "eight_digits", when=date.style == "bare")
    note.doubt(ocr_factor([date.span.segment.line.confidence]), "ocr_unsure")


def _compare(note: Assessment, name: str, day: dt.date, partner: dt.date, sheet: Sheet) -> None:
    """Invoice date and due date must be in order and not years apart; printed terms that fit confirm both."""
    issued, due = (day, partner) if name == "date" else (partner, day)
    days = (due - issued).days
    if not 0 <= days <= 125:
        note.doubt(0.6, "due_date_out_of_order")
        return
    terms = {int(match[1]) for segment in sheet.segments for match in _TERM_DAYS.finditer(segment.folded.plain)}
    note.support(0.5, "terms_agree", when=days in terms and days > 0)


def _unlabelled(
    claims: Mapping[str, Sequence[Claim]], dates: Sequence[DateFound], labels: Sequence[Label], sheet: Sheet
) -> Field:
    """Without a label only a date that nobody else claims may be the invoice's, and a person should look."""
    claimed = {
        claim.value
        for kind in ("due", "other_date", "number", "other_id")
        for claim in claims.get(kind, ())
        if claim.standing > 0.4
    }
    free = [date for index, date in enumerate(dates) if index not in claimed and date.style != "bare"]
    if not free:
        return Field.absent("date", "date", "no_date")
    free.sort(key=lambda date: (-_standalone(date, labels, sheet), _depth(date, sheet)))
    best = free[0]
    rivals = [
        date
        for date in free[1:]
        if date.day != best.day and _standalone(date, labels, sheet) >= _standalone(best, labels, sheet)
    ]
    note = Assessment(value=max(0.7, _standalone(best, labels, sheet)) if not rivals else 0.5)
    note.reasons.append("no_label")
    _doubt_date(note, best)
    return _as_field("date", best, note, [date for date in free[1:4] if date.day != best.day])


def _standalone(date: DateFound, labels: Sequence[Label], sheet: Sheet) -> float:
    """What a date without a label is worth by its surroundings.

    Letters put place and date on one line (``Berlin, den 03.02.2026``); receipts print the time behind it.
    """
    segment, span = date.span.segment, date.span
    before, after = segment.text[: span.start].strip(), segment.text[span.end :].strip()
    high = (segment.y0 - sheet.top) / max(sheet.bottom - sheet.top, 1.0) < 0.45
    if not after and high and _PLACE.fullmatch(before):
        return 0.88
    row = sheet.rows[sheet.row_of[segment.index]]
    beside = after or next((other.text for other in row if other.x0 > segment.x1), "")
    if _TIME.match(beside) and not before:
        return 0.85
    if _OF.search(before) and _names_invoice(segment, before, labels, sheet):
        return 0.88
    return 0.75 if not before and not after and high else 0.0


def _names_invoice(segment: Segment, before: str, labels: Sequence[Label], sheet: Sheet) -> bool:
    """True when the invoice's number or title stands before the date, or alone in the line above it."""
    for label in labels:
        if label.kind not in {"number", "title"} or label.is_head:
            continue
        if label.segment is segment and label.span.end <= len(before) + 1:
            return True
        if _OF.fullmatch(before) and 0 < (segment.y0 - label.segment.y0) / sheet.unit < 2.2:
            return abs(segment.x0 - label.segment.x0) < 2 * sheet.unit
    return False


def _as_field(name: str, date: DateFound, note: Assessment, others: Sequence[DateFound]) -> Field:
    confidence = note.result()
    ranked = [(date.other, date)] if date.other else []
    ranked += [(other.day, other) for other in others]
    return Field(
        name=name,
        kind="date",
        value=date.day.isoformat(),
        confidence=confidence,
        page=date.span.segment.page,
        box=date.span.box,
        source_text=date.span.text,
        alternatives=tuple(
            Alternative(
                value=day.isoformat(),
                confidence=round(min(confidence, 1 - confidence), 3),
                page=other.span.segment.page,
                box=other.span.box,
                source_text=other.span.text,
            )
            for day, other in ranked[:3]
        ),
        reasons=tuple(note.reasons),
    )

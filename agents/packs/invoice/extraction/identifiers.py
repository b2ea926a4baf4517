"""The invoice number: the identifier that an invoice-number label owns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.packs.invoice.extraction.confidence import Assessment, margin_factor, spelling_factor
from agents.packs.invoice.extraction.contest import Claim, contest
from agents.packs.invoice.extraction.folding import compacted
from agents.packs.invoice.extraction.frame import Sheet, Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.lexicon import WEAK
from agents.packs.invoice.extraction.model import Alternative, Field
from agents.packs.invoice.extraction.relation import Link, Neighbours

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9\-/._#&+]*")
_PREFIXED = re.compile(r"^[A-Z]{1,5}[-/]?\d{3,}")
_AMOUNT_LIKE = re.compile(r"^\d{1,3}(?:[.,]\d{3})*[.,]\d{2}$")
_SUSPECT = re.compile(r"(?<=\d)[OoIl](?=\d)|(?<=[A-Z])l(?=[A-Z\d-])|^l(?=\d)|(?<=[A-Z])O(?=0)|^[A-Z]1-")
_TITLE_REACH = 8.0
"""Lines within which a title says what a bare "No." or "#" counts: receipts and forms number other things too."""
_KINDS = frozenset(
    {
        "number",
        "title",
        "other_id",
        "hs",
        "total",
        "date",
        "due",
        "other_date",
        "tax",
        "net",
        "other_amount",
        "quantity",
        "rate",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """A run of characters that may be an identifier."""

    span: Span
    shape: float
    """How much it looks like an identifier, in [0, 1]."""

    @property
    def value(self) -> str:
        """As printed; spaces the OCR put around hyphens and slashes, or into a lettered number, are taken out."""
        text = re.sub(r"\s*([-/])\s*", r"\1", self.span.text)
        return text.replace(" ", "") if self.is_parted else text

    @property
    def is_parted(self) -> bool:
        """True when a space stands among the figures of a number that has letters or hyphens, too."""
        return bool(re.search(r"[A-Za-z/-].*\d \d", self.span.text))


def find_identifiers(sheet: Sheet, labels: Sequence[Label], blocked: Sequence[Span]) -> list[Identifier]:
    """Every token with a digit, and runs of such tokens, outside labels and `blocked` spans."""
    barriers: dict[int, list[tuple[int, int]]] = {}
    for span in [label.span for label in labels] + list(blocked):
        barriers.setdefault(span.segment.index, []).append((span.start, span.end))
    found: list[Identifier] = []
    for segment in sheet.segments:
        tokens = []
        for match in _TOKEN.finditer(segment.text):
            start, end = match.start(), match.start() + len(match.group().rstrip("-/._#&+"))
            start = max(
                [start, *(stop for begin, stop in barriers.get(segment.index, ()) if begin <= start < stop)]
            )
            if end > start and not any(
                begin < end and start < stop for begin, stop in barriers.get(segment.index, ())
            ):
                tokens.append((start, end))
        for begin, end in _runs(segment.text, tokens):
            start = begin + len(segment.text[begin:end]) - len(segment.text[begin:end].lstrip("-/._#&+"))
            text = segment.text[start:end]
            if any(char.isdigit() for char in text):
                found.append(Identifier(span=Span(segment=segment, start=start, end=end), shape=_shape(text)))
    return found


def _runs(text: str, tokens: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join tokens that belong together, such as ``INV 2024 - 001``, across single spaces."""
    runs: list[tuple[int, int]] = []
    for start, end in tokens:
        if runs:
            before, gap = text[runs[-1][0] : runs[-1][1]], text[runs[-1][1] : start]
            here = text[start:end]
            joined = gap in {" - ", "- ", " -", " / ", "/ ", " /", "-", "/"} and _part(before) and _part(here)
            prefix = (
                gap == " " and before.isupper() and before.isalpha() and len(before) <= 5 and here[0].isdigit()
            )
            digits = gap == " " and before.replace(" ", "").isdigit() and here.isdigit()
            # The rest of the line is figures only: the OCR saw a space within the number.
            parted = (
                gap == " "
                and before[-1:].isdigit()
                and text[start:].isdigit()
                and text[: runs[-1][0]].strip() == ""
            )
            if joined or prefix or digits or parted:
                runs[-1] = (runs[-1][0], end)
                continue
        runs.append((start, end))
    return runs


def _part(text: str) -> bool:
    return any(char.isdigit() for char in text) or (text.isupper() and len(text) <= 6)


def _shape(text: str) -> float:
    digits = sum(char.isdigit() for char in text)
    size = len(re.sub(r"\W", "", text))
    if _AMOUNT_LIKE.match(text):
        return 0.4
    if size < 2:
        return 0.35
    if size < 3:
        return 0.7
    if size == 4 and re.match(r"^(?:19|20)\d\d$", text):
        return 0.6
    if re.search(r"[a-z]{4,}", text):
        return 0.4 if digits < 3 else 0.7
    return 0.9 if size > 24 else 1.0


def choose_number(
    sheet: Sheet, labels: Sequence[Label], identifiers: Sequence[Identifier], neighbours: Neighbours
) -> Field:
    """The invoice number with its confidence, or an absent field."""
    contenders = [label for label in labels if label.kind in _KINDS and not label.is_head]

    def worth(label: Label, index: int, link: Link) -> float:
        shape = identifiers[index].shape
        if label.kind == "title":
            prefixed = bool(_PREFIXED.match(identifiers[index].value))
            if link.place == "same" and link.score > 0.9:
                return 0.62 * shape
            return 0.5 * shape if link.place == "right" and link.score > (0.7 if prefixed else 0.85) else 0.0
        return shape

    claims = contest(
        contenders, [item.span for item in identifiers], neighbours, worth, frozenset({"number", "title"})
    )
    ours = sorted([*claims.get("number", ()), *claims.get("title", ())], key=lambda claim: -_standing(claim))
    ours = [claim for claim in ours if _standing(claim) > 0.1]
    if not ours:
        return Field.absent("number", "text", "no_labelled_number")
    best = ours[0]
    chosen = identifiers[best.value]
    others = [claim for claim in ours[1:] if compacted(identifiers[claim.value].value) != compacted(chosen.value)]
    alone = best.link.label.strength <= WEAK and not _near_title(sheet, best.link.label, labels)
    confidence, reasons = _assess(sheet, identifiers, best, _standing(others[0]) if others else 0.0, alone=alone)
    return Field(
        name="number",
        kind="text",
        value=chosen.value,
        confidence=confidence,
        page=chosen.span.segment.page,
        box=chosen.span.box,
        source_text=chosen.span.text,
        alternatives=tuple(
            Alternative(
                value=identifiers[claim.value].value,
                confidence=min(confidence, _standing(claim) * 0.6),
                page=identifiers[claim.value].span.segment.page,
                box=identifiers[claim.value].span.box,
                source_text=identifiers[claim.value].span.text,
            )
            for claim in others[:3]
        ),
        reasons=reasons,
    )


def _standing(claim: Claim) -> float:
    """Title and number labels are one kind here, so they are no rivals of each other."""
    if claim.link.label.kind == "title":
        return claim.standing if claim.owned else claim.standing * 0.9
    return claim.standing


def _near_title(sheet: Sheet, label: Label, labels: Sequence[Label]) -> bool:
    """True when the word invoice, or another title, stands within a few lines of the label."""
    return any(
        other.kind == "title" and abs(other.segment.middle - label.segment.middle) < _TITLE_REACH * sheet.unit
        for other in labels
    )


def _assess(
    sheet: Sheet, identifiers: Sequence[Identifier], best: Claim, second: float, *, alone: bool
) -> tuple[float, tuple[str, ...]]:
    chosen = identifiers[best.value]
    label = best.link.label
    wanted = compacted(chosen.value)
    repeated = (
        len(wanted) >= 4
        and chosen.shape >= 0.95
        and sum(wanted in segment.folded.compact for segment in sheet.segments) > 1
    )
    note = Assessment()
    note.doubt(0.88, "label_is_title", when=label.kind == "title")
    note.doubt(0.9, "label_weak", when=label.kind == "number" and label.strength < 0.8 and label.exact)
    note.doubt(0.85, "label_qualified", when=label.qualified and (label.kind == "number" or label.strength < 0.4))
    note.doubt(0.85, "no_title_near", when=label.kind == "number" and label.exact and alone)
    note.doubt(0.93, "label_misread", when=not label.exact)
    note.doubt(0.55 + 0.6 * best.link.score, "far_from_label", when=best.link.score < 0.72)
    note.doubt(0.6, "claimed_by_other_label", when=best.rival > best.score)
    note.doubt(0.75, "not_first_choice_of_label", when=not best.owned)
    note.doubt(margin_factor(_standing(best), second), "close_alternative")
    note.doubt(0.5 + 0.5 * chosen.shape, "unlikely_shape", when=chosen.shape < 0.95)
    note.doubt(spelling_factor(chosen.span.segment.line.confidence), "ocr_unsure")
    note.doubt(0.75, "runs_into_neighbour", when=_runs_on(chosen.span, label))
    note.doubt(0.8, "space_inside", when=chosen.is_parted)
    note.doubt(0.75, "letter_or_digit", when=bool(_SUSPECT.search(chosen.value)))
    note.support(0.5, "repeated_in_document", when=repeated)
    return note.result(), tuple(note.reasons)


def _runs_on(span: Span, label: Label) -> bool:
    """True when a letter or digit touches the identifier: the OCR ran two columns together."""
    text = span.segment.text
    glued_label = label.segment is span.segment and label.span.end == span.start
    before = span.start > 0 and text[span.start - 1].isalnum() and not (glued_label and label.exact)
    return before or (span.end < len(text) and text[span.end].isalnum())

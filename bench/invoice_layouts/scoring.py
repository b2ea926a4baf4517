"""Compares answers with the truth and counts what matters: right, wrong, and whether doubt was voiced."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.packs.invoice.extraction.model import REVIEW_THRESHOLD
from bench.invoice_layouts.answers import FIELDS, FOUR_FIELDS, Answer, Answers
from bench.invoice_layouts.degrade import Box
from bench.invoice_layouts.generator import GeneratedInvoice

_LEAST_COVER = 0.5

Verdict = str
"""``right``, ``wrong``, ``missing`` (printed, not found), ``spurious`` (found, not printed) or ``absent``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One field of one page: what was asked, what came back, and the verdict."""

    field: str
    verdict: Verdict
    expected: str | None
    answer: Answer
    placed: bool
    """Whether the answer's box covers a place where the field is printed."""

    @property
    def flagged(self) -> bool:
        """Whether a person would be asked to look at it."""
        return self.answer.value is None or self.answer.confidence < REVIEW_THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScore:
    """All outcomes of one page, with what the page was like."""

    language: str
    layout: str
    degradation: str
    outcomes: Mapping[str, Outcome]

    @property
    def four_right(self) -> bool:
        """Whether number, date, currency and total are all right."""
        return all(self.outcomes[name].verdict == "right" for name in FOUR_FIELDS)


def score_page(page: GeneratedInvoice, answers: Answers) -> PageScore:
    """Compare the answers for one page with its truth."""
    return PageScore(
        language=page.language,
        layout=page.layout,
        degradation=page.degradation,
        outcomes={name: _outcome(name, page, answers[name]) for name in FIELDS},
    )


def summary(pages: Sequence[PageScore]) -> dict[str, Any]:
    """The figures over many pages, by field and by what the pages were like."""
    return {
        "pages": len(pages),
        "fields": {name: _figures([page.outcomes[name] for page in pages]) for name in FIELDS},
        "four_fields": {
            **_figures([page.outcomes[name] for page in pages for name in FOUR_FIELDS]),
            "whole_page_accuracy": _share(sum(page.four_right for page in pages), len(pages)),
        },
        "by_language": _grouped(pages, lambda page: page.language),
        "by_layout": _grouped(pages, lambda page: page.layout),
        "by_degradation": _grouped(pages, lambda page: page.degradation),
    }


def _outcome(name: str, page: GeneratedInvoice, answer: Answer) -> Outcome:
    expected = expected_text(name, page.truth)
    if answer.value is None:
        verdict = "absent" if expected is None else "missing"
    elif expected is None:
        verdict = "spurious"
    else:
        verdict = "right" if same(name, expected, answer.value) else "wrong"
    places = page.boxes.get(name, ())
    placed = answer.box is not None and any(covers(answer.box, place) for place in places)
    return Outcome(field=name, verdict=verdict, expected=expected, answer=answer, placed=placed)


def expected_text(name: str, truth: Mapping[str, Any]) -> str | None:
    """The truth of a field as text; lists are joined by spaces."""
    if name == "lines":
        return " ".join(line["amount"] for line in truth["lines"])
    if name == "hs_codes":
        return " ".join(truth["hs_codes"]) or None
    value: str | None = truth[name]
    return value


def same(name: str, expected: str, value: str) -> bool:
    """Whether a value says what is expected, under the rules of its field.

    Numbers, dates and currencies must be equal; amounts equal in value; a supplier equal in letters and digits
    without accents; a BIC in its first eight characters; an Incoterm in its rule; lists element by element.
    """
    rules: dict[str, Callable[[str, str], bool]] = {
        "total": _same_amount,
        "tax": _same_amount,
        "supplier": lambda left, right: _letters(left) == _letters(right),
        "number": lambda left, right: left.replace(" ", "") == right.replace(" ", ""),
        "iban": lambda left, right: left == right.replace(" ", "").upper(),
        "bic": lambda left, right: left[:8] == right.replace(" ", "").upper()[:8],
        "incoterm": lambda left, right: left[:3] == right.strip().upper()[:3],
        "hs_codes": lambda left, right: left == " ".join(_digits(code) for code in right.split()),
        "lines": _same_amounts,
    }
    rule = rules.get(name)
    return rule(expected, value) if rule else expected == value


def covers(box: Box, place: Box) -> bool:
    """Whether the box covers at least half of the place."""
    wide = min(box[0] + box[2], place[0] + place[2]) - max(box[0], place[0])
    high = min(box[1] + box[3], place[1] + place[3]) - max(box[1], place[1])
    return wide > 0 and high > 0 and wide * high >= _LEAST_COVER * place[2] * place[3]


def _figures(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    known = list(outcomes)
    asked = [outcome for outcome in known if outcome.expected is not None]
    right = [outcome for outcome in asked if outcome.verdict == "right"]
    failed = [outcome for outcome in asked if outcome.verdict != "right"]
    wrong = [outcome for outcome in failed if outcome.verdict == "wrong"]
    spurious = [outcome for outcome in known if outcome.verdict == "spurious"]
    placeable = [outcome for outcome in right if outcome.answer.box is not None]
    return {
        "asked": len(asked),
        "right": len(right),
        "accuracy": _share(len(right), len(asked)),
        "wrong": len(wrong),
        "missing": len(failed) - len(wrong),
        "spurious": len(spurious),
        "spurious_confident": sum(not outcome.flagged for outcome in spurious),
        "failures_flagged": _share(sum(outcome.flagged for outcome in failed), len(failed)),
        "wrong_flagged": _share(sum(outcome.flagged for outcome in wrong), len(wrong)),
        "right_confident": _share(sum(not outcome.flagged for outcome in right), len(right)),
        "box_right": _share(sum(outcome.placed for outcome in placeable), len(placeable)),
    }


def _grouped(pages: Sequence[PageScore], key: Callable[[PageScore], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[PageScore]] = {}
    for page in pages:
        groups.setdefault(key(page), []).append(page)
    return {
        name: {
            "pages": len(members),
            "accuracy": _figures([page.outcomes[field] for page in members for field in FOUR_FIELDS])["accuracy"],
            "whole_page_accuracy": _share(sum(page.four_right for page in members), len(members)),
        }
        for name, members in sorted(groups.items())
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _same_amount(left: str, right: str) -> bool:
    try:
        return Decimal(left) == Decimal(right)
    except InvalidOperation:
        return False


def _same_amounts(left: str, right: str) -> bool:
    expected, found = left.split(), right.split()
    return len(expected) == len(found) and all(map(_same_amount, expected, found))


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    return "".join(character for character in plain if character.isalnum()).casefold()


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())

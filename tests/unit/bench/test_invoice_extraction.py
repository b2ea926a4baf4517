"""The evaluation: what counts as right, what as doubt, and that the program runs end to end."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.invoice_extraction import main, table
from bench.invoice_layouts.answers import FIELDS, Answer, Answers
from bench.invoice_layouts.gallery import write_gallery
from bench.invoice_layouts.generator import GeneratedInvoice
from bench.invoice_layouts.naive import naive_answers
from bench.invoice_layouts.scoring import covers, same, score_page, summary
from tools.document.reading import DocumentReading, Page, TextLine

TRUTH: Mapping[str, Any] = {
    "number": "RE-7",
    "date": "2026-03-04",
    "due_date": None,
    "supplier": "Säntis Textil AG",
    "currency": "CHF",
    "total": "1949.75",
    "tax": "146.10",
    "iban": "CH9300762011623852957",
    "bic": None,
    "incoterm": "CIF Basel",
    "hs_codes": ["848210", "84137020"],
    "lines": [{"description": "x", "quantity": "1", "unit_price": "1803.65", "amount": "1803.65"}],
}


def page(**changes: Any) -> GeneratedInvoice:
    return GeneratedInvoice(
        seed=1,
        image=b"",
        media_type="image/png",
        size=(100, 100),
        truth=dict(TRUTH) | changes,
        boxes={"total": ((50, 50, 20, 10),)},
        language="de",
        country="CH",
        layout="form",
        degradation="clean",
        degradation_details="clean",
    )


def answers(confidence: float = 0.95, **values: str | None) -> Answers:
    given: dict[str, str | None] = {
        "number": "RE-7",
        "date": "2026-03-04",
        "supplier": "Santis Textil AG",
        "currency": "CHF",
        "total": "1949.75",
        "tax": "146.1",
        "iban": "CH93 0076 2011 6238 5295 7",
        "incoterm": "cif Basel",
        "hs_codes": "8482.10 8413.7020",
        "lines": "1803.65",
    }
    return Answers(
        fields={
            name: Answer(value=value, confidence=confidence, box=(45, 45, 40, 20))
            for name, value in (given | values).items()
        }
    )


def verdicts(given: Answers) -> dict[str, str]:
    return {name: outcome.verdict for name, outcome in score_page(page(), given).outcomes.items()}


def test_right_answers_are_right_in_their_own_way_of_writing() -> None:
    found = verdicts(answers())
    assert {found[name] for name in FIELDS if name not in {"due_date", "bic"}} == {"right"}
    assert found["due_date"] == found["bic"] == "absent"


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("number", "RE-8", "wrong"),
        ("number", None, "missing"),
        ("date", "2026-04-03", "wrong"),
        ("currency", "EUR", "wrong"),
        ("total", "194975", "wrong"),
        ("total", "no number", "wrong"),
        ("supplier", "Säntis Textil GmbH", "wrong"),
        ("hs_codes", "848210", "wrong"),
        ("lines", "1803.65 146.10", "wrong"),
        ("bic", "KBHRCH22", "spurious"),
    ],
)
def test_other_answers_are_not(name: str, value: str | None, verdict: str) -> None:
    assert verdicts(answers(**{name: value}))[name] == verdict


def test_a_bic_with_and_without_branch_is_the_same() -> None:
    assert same("bic", "KBHRCH22XXX", "KBHRCH22")
    assert not same("bic", "KBHRCH22XXX", "KBHRCHZZ")


def test_doubt_is_counted_for_wrong_and_for_right_answers() -> None:
    pages = [
        score_page(page(), answers()),
        score_page(page(), answers(total="1.00")),
        score_page(page(), answers(confidence=0.5, total="1.00")),
        score_page(page(), answers(confidence=0.5)),
    ]
    result = summary(pages)
    total = result["fields"]["total"]
    assert (total["asked"], total["right"], total["wrong"]) == (4, 2, 2)
    assert total["failures_flagged"] == 0.5
    assert total["right_confident"] == 0.5
    assert result["four_fields"]["accuracy"] == 14 / 16
    assert result["four_fields"]["whole_page_accuracy"] == 0.5
    assert result["by_layout"]["form"]["pages"] == 4


def test_a_box_is_right_where_it_covers_half_of_the_printed_value() -> None:
    assert covers((0, 0, 10, 10), (0, 0, 20, 10))
    assert not covers((0, 0, 9, 10), (0, 0, 20, 10))
    assert not covers((30, 0, 10, 10), (0, 0, 20, 10))


def test_the_baseline_takes_the_first_match() -> None:
    texts = ("Acme Ltd", "Invoice no. A-17", "Date 03/04/2026", "Due 05/04/2026", "Total EUR 1,200.50")
    lines = tuple(
        TextLine(
            text=text, quad=(0, 10.0 * row, 50, 10.0 * row, 50, 10.0 * row + 8, 0, 10.0 * row + 8), confidence=1
        )
        for row, text in enumerate(texts)
    )
    scan = Page(page=1, width=100, height=100, lines=lines, sharpness=500)
    found = naive_answers(DocumentReading(name="a", sha256="0", media_type="image/png", pages=(scan,)))
    assert found["number"].value == "A-17"
    assert found["date"].value == "2026-04-03"
    assert found["due_date"].value == "2026-04-05"
    assert found["total"].value == "1200.50"
    assert found["currency"].value == "EUR"
    assert found["iban"].value is None


def test_the_gallery_shows_mistakes_and_escapes_what_was_read(tmp_path: Path) -> None:
    made = page()
    target = write_gallery(tmp_path, [(made, score_page(made, answers(number="<script>")))])
    text = target.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert "<script>" not in text
    assert (tmp_path / "invoice-1.png").exists()


def test_the_program_reads_a_page_and_prints_one_object(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--count", "1", "--seed", "70000", "--json", "--html", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert result["extractor"]["pages"] == 1
    assert set(result["extractor"]["fields"]) == set(FIELDS)
    assert result["seconds_per_page"]["reading"] > 0
    assert "1/1" in printed.err
    assert "four_fields" in table(result)


def test_a_count_below_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--count", "0"])
    assert "at least 1" in capsys.readouterr().err

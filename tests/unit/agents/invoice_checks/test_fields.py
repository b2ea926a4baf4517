"""Extraction as an agent, the places to read again, and what second readings may change."""

import pytest

from agents.packs.invoice.extraction import extract
from agents.packs.invoice.fields import MAX_PLACES, amend, amend_fields, doubtful_places, extract_fields
from agents.packs.invoice.validators import values_stand_in_the_text
from podium.errors import InputContractBroken
from tests.unit.agents.invoice_checks.papers import CONTEXT
from tools.document.reading import DocumentReading, Page, TextLine


def _line(text, *, x=100, y=100, length=300, height=30, confidence=0.9, turn=0):
    """A line whose text runs as on a page turned by `turn` degrees clockwise."""
    quads = {
        0: (x, y, x + length, y, x + length, y + height, x, y + height),
        90: (x + height, y, x + height, y + length, x, y + length, x, y),
        180: (x + length, y + height, x, y + height, x, y, x + length, y),
        270: (x, y + length, x, y, x + height, y, x + height, y + length),
    }
    return TextLine(text=text, quad=tuple(float(value) for value in quads[turn]), confidence=confidence)


def _reading(*lines):
    page = Page(page=1, width=1240, height=1754, lines=lines, sharpness=500.0)
    return DocumentReading(name="a.png", sha256="0" * 64, media_type="image/png", pages=(page,))


def _second(*lines, page=1):
    values = [{"text": line.text, "quad": list(line.quad), "confidence": line.confidence} for line in lines]
    return {
        "field": "number",
        "page": page,
        "box": [0, 0, 1, 1],
        "setting": "x",
        "confidence": 1.0,
        "lines": values,
    }


def _texts(reading):
    return [line.text for line in reading.pages[0].lines]


INVOICE = tuple(
    _line(text, y=100 + 60 * row, length=14 * len(text), confidence=0.98)
    for row, text in enumerate(
        (
            "Acme Trading GmbH",
            "Invoice No. 2026-0417",
            "Invoice date 2026-01-05",
            "Currency EUR",
            "Total due EUR 119.00",
        )
    )
)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_surer_second_reading_replaces_the_first_whichever_way_the_page_lies(turn):
    first = _line("1nvoice 12", confidence=0.5, turn=turn)
    second = _line("Invoice 12", confidence=0.9, height=33, turn=turn)
    amended, changed = amend(_reading(first), [_second(second)])
    assert amended.pages[0].lines == (second,)
    (change,) = changed
    assert (change["before"], change["after"]) == ("1nvoice 12", "Invoice 12")
    assert (change["confidence_before"], change["confidence_after"]) == (0.5, 0.9)
    assert change["box"] == list(second.box)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
@pytest.mark.parametrize(
    "second",
    [
        {"text": "Invoi", "length": 150},  # half of the line
        {"text": "Invoice 12", "confidence": 0.5},  # no surer
        {"text": "Invoice 12 and the next column", "length": 600},
        {"text": "cut off", "height": 12},  # a neighbour at the edge of the crop
        {"text": "elsewhere", "y": 900, "x": 900},
    ],
)
def test_no_second_reading_makes_things_worse(second, turn):
    first = _line("Invoice l2", confidence=0.5, turn=turn)
    reading = _reading(first)
    again = _line(**({"confidence": 0.99, "turn": turn} | second))
    assert amend(reading, [_second(again)]) == (reading, [])


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_line_that_comes_back_in_pieces_is_replaced_by_them_in_order(turn):
    before, after = _line("before", y=20, x=20, length=60), _line("after", y=800, x=800)
    first = _line("Total 1OO due 2O26", length=600, confidence=0.5, turn=turn)
    along = {0: (0, 320), 90: (0, 320), 180: (320, 0), 270: (320, 0)}[turn]
    sideways = turn in (90, 270)
    pieces = [
        _line(text, length=280, turn=turn, **({"y": 100 + offset} if sideways else {"x": 100 + offset}))
        for text, offset in zip(("Total 100", "due 2026"), along, strict=True)
    ]
    amended, changed = amend(_reading(before, first, after), [_second(*reversed(pieces))])
    assert _texts(amended) == ["before", "Total 100", "due 2026", "after"]
    assert [change["after"] for change in changed] == ["Total 100 due 2026"]


def test_two_places_on_one_line_and_several_lines_of_one_place():
    lines = [
        _line("a", y=100, confidence=0.5),
        _line("b", y=200, confidence=0.5),
        _line("c", y=300, confidence=0.5),
    ]
    again = [_line(text, y=y, confidence=0.9) for text, y in (("A", 100), ("C", 300))]
    once_more = _line("AA", y=100, confidence=0.95)
    amended, changed = amend(_reading(*lines), [_second(*again), _second(once_more)])
    assert _texts(amended) == ["AA", "b", "C"]
    assert [(change["before"], change["after"]) for change in changed] == [("c", "C"), ("a", "A"), ("A", "AA")]


def test_the_same_text_read_surer_is_no_change_but_counts():
    amended, changed = amend(_reading(_line("a", confidence=0.5)), [_second(_line("a", confidence=0.9))])
    assert changed == []
    assert amended.pages[0].lines[0].confidence == 0.9


@pytest.mark.parametrize("page", [0, 2])
def test_a_second_reading_of_a_page_that_is_not_there_is_refused(page):
    with pytest.raises(InputContractBroken, match=f"page {page} was read again, of 1"):
        amend(_reading(_line("a")), [_second(_line("b"), page=page)])


def test_a_clean_invoice_has_no_doubtful_place_and_its_values_stand_in_the_text():
    reading = _reading(*INVOICE)
    inputs = {"reading": reading.to_json()}
    output = extract_fields(inputs, CONTEXT)
    fields = output["invoice"]["fields"]
    assert (fields["number"]["value"], fields["total"]["value"]) == ("2026-0417", "119.00")
    sure = {place["field"] for place in output["doubtful"]}
    assert not sure & {"number", "date", "total"}
    assert values_stand_in_the_text(inputs, output, CONTEXT) == []
    assert output["sources"][0]["sha256"] == reading.sha256
    assert "number: page 1 box" in output["sources"][0]["location"]


def test_a_value_made_up_is_refused():
    inputs = {"reading": _reading(*INVOICE).to_json()}
    output = extract_fields(inputs, CONTEXT)
    output["invoice"]["fields"]["number"]["value"] = "2026-9999"
    (violation,) = values_stand_in_the_text(inputs, output, CONTEXT)
    assert violation.startswith("number '2026-9999' is not in the text at page 1")


def test_an_unsure_value_is_to_be_read_again_with_its_whole_line():
    lines = (INVOICE[0], _line("Invoice No. 2026-0417", y=160, length=294, confidence=0.4), *INVOICE[2:])
    reading = _reading(*lines)
    places = doubtful_places(reading, extract(reading))
    (place,) = [place for place in places if place["field"] == "number"]
    assert place["box"] == list(lines[1].box)
    assert "is below 0.8" in place["reason"]
    amended = amend_fields(
        {"reading": reading.to_json(), "readings": [_second(_line("Invoice No. 2026-0419", y=160, length=294))]},
        CONTEXT,
    )
    assert amended["invoice"]["fields"]["number"]["value"] == "2026-0419"
    assert amended["changed"][0]["before"] == "Invoice No. 2026-0417"


def test_a_bad_account_and_a_short_tariff_code_are_read_again_with_the_reason():
    lines = (
        *INVOICE,
        _line("IBAN DE89 3704 0044 0532 0130 01", y=460, length=450),
        _line("HS code 8471300", y=520),
    )
    reading = _reading(*lines)
    reasons = {place["field"]: place["reason"] for place in doubtful_places(reading, extract(reading))}
    assert "check digits" in reasons["iban"]
    assert any("has 7 digits" in reason for reason in reasons.values())


def test_no_more_places_than_a_device_is_asked_to_read():
    codes = [_line(f"HS code 84713{number:02d}", y=700 + 15 * number, height=12) for number in range(60)]
    reading = _reading(*INVOICE, *codes)
    assert len(doubtful_places(reading, extract(reading))) <= MAX_PLACES

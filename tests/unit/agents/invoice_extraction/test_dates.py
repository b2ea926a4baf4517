"""Dates in every order and language."""

import datetime as dt

import pytest

from agents.packs.invoice.extraction.dates import find_dates, parse_text, settle_order
from agents.packs.invoice.extraction.frame import lay_out
from tests.unit.agents.invoice_extraction.page_art import reading

DAY = dt.date(2026, 3, 14)


def _dates(text, month_first=0.03):
    return settle_order(find_dates(lay_out(reading(text)).segments), month_first)


@pytest.mark.parametrize(
    "text",
    [
        "14.03.2026",
        "14. 03. 2026",
        "14/03/26",
        "14-03-2026",
        "2026-03-14",
        "2026/3/14",
        "2026.03.14",
        "03/14/2026",
        "14 March 2026",
        "March 14, 2026",
        "Mar 14 2026",
        "14th March 2026",
        "14-Mar-26",
        "14March2026",
        "Mar. 14, 2026",
        "14. März 2026",
        "14.Marz 2026",
        "14 mars 2026",
        "14 maart 2026",
        "14 de marzo de 2026",
        "14 mar. 2026",
        "14demarzode2026",
        "2026年3月14日",
        "2026 年 03 月 14 日",
        "二〇二六年三月十四日",
        "14 marzo 2026",
        "14 Mrz 2026",
        "Datum:14.03.2026",
        "Sat 14 Mar 2026",
        "14 de març de 2026".replace("ç", "z") + "",
    ],
)
def test_forms(text):
    assert DAY in {date.day for date in _dates(text)} | parse_text(text)


@pytest.mark.parametrize(
    "text", ["11 December 2026", "11December 2026", "11 décembre 2026", "11 dicembre 2026", "11 Deoember 2026"]
)
def test_month_names_that_open_like_a_particle(text):
    assert [date.day for date in _dates(text)] == [dt.date(2026, 12, 11)]


@pytest.mark.parametrize(
    "text", ["12.345.678", "+49 30 1234567", "192.168.10.26.5", "31.02.2026", "99/99/2026", "Marathon 2026"]
)
def test_what_is_no_date(text):
    assert _dates(text) == []


def test_one_certain_date_settles_the_others():
    (first, second) = _dates("03/04/2026  03/28/2026")
    assert first.day == dt.date(2026, 3, 4)
    assert first.certainty > 0.9
    assert second.day == dt.date(2026, 3, 28)


def test_without_evidence_the_order_stays_doubtful():
    (date,) = _dates("03/04/2026", month_first=0.5)
    assert date.certainty <= 0.5
    assert {date.day, date.other} == {dt.date(2026, 3, 4), dt.date(2026, 4, 3)}


def test_mixed_separators_are_doubtful():
    (date,) = _dates("2026-03.14")
    assert date.day == DAY
    assert date.certainty < 0.9

"""Whatever is sent, normalising it is safe, repeatable, and its spans can be trusted."""

import time
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tools.text.sales_words import YAML, sales_vocabulary
from tools.text.cleaning import MAX_REQUEST_CHARS, clean
from tools.text.errors import TextInvalid, TextTooLong, VocabularyInvalid
from tools.text.normalisation import normalise
from tools.text.vocabulary import Vocabulary

VOCABULARY = sales_vocabulary()
NOW = datetime(2026, 1, 5, tzinfo=UTC)

_FRAGMENTS = st.sampled_from(
    [
        *(
            "华东",
            "华冻",
            "区域",
            "上季度",
            "last ",
            "quarter ",
            "sales ",
            "slaes ",
            "15%",
            "超",
            "more than ",
            "不",
        ),
        *("excluding ", "1847", "Q7 ", "and ", "和", "2025年", "3月", "\u200b", "é", "top 3", "between ", " to "),
        *(
            "ÅÄ",
            "İ",
            "ﬁ",
            "👩‍👩‍👧",
            "\x00",
            "East",
            "Chian ",
            "'s ",
            "的",
            "百分之",
            "十",
            "半",
            "$",
            "ｓａｌｅｓ",
        ),
    ]
)
TEXTS = st.text(max_size=80) | st.lists(_FRAGMENTS, max_size=14).map("".join)


@given(TEXTS, st.datetimes(datetime(1990, 1, 1), datetime(2100, 12, 31)))  # noqa: DTZ001 - hypothesis wants them naive
def test_any_text_under_any_clock(text, clock):
    now = clock.replace(tzinfo=UTC)
    if any("\ud800" <= char <= "\udfff" for char in text):
        with pytest.raises(TextInvalid):
            normalise(text, now=now, vocabulary=VOCABULARY)
        return
    request = normalise(text, now=now, vocabulary=VOCABULARY)
    assert request.original == text
    for found in (*request.entities, *request.unresolved):
        assert 0 <= found.start < found.end <= len(request.text)
        assert found.text == request.text[found.start : found.end]
    for entity in request.entities:
        assert 0 < entity.confidence <= 1
        assert entity.values
        if entity.period is not None:
            assert entity.period.start < entity.period.end
    again = normalise(request.text, now=now, vocabulary=VOCABULARY)
    assert again.text == request.text
    assert again.entities == request.entities
    assert again.unresolved == request.unresolved


@given(st.text(max_size=60))
def test_cleaning_settles(text):
    if any("\ud800" <= char <= "\udfff" for char in text):
        return
    cleaned = clean(text)
    assert clean(cleaned.text).text == cleaned.text
    assert clean(cleaned.text).corrections == ()


def test_cleaning_reports_what_it_removed():
    request = normalise("华东\x00上季度\u200b销售额\u202e １５％", now=NOW, vocabulary=VOCABULARY)
    assert request.text == "华东上季度销售额 15%"
    removed = [found.original for found in request.corrections if found.reason == "control_character"]
    assert removed == ["\x00", "\u200b", "\u202e"]
    assert "unicode_form" in {found.reason for found in request.corrections}


def test_lone_surrogates_and_long_texts_are_refused():
    with pytest.raises(TextInvalid, match="character 2"):
        normalise("ab\ud800", now=NOW, vocabulary=VOCABULARY)
    with pytest.raises(TextTooLong):
        normalise("a" * (MAX_REQUEST_CHARS + 1), now=NOW, vocabulary=VOCABULARY)
    with pytest.raises(TextTooLong):  # one sign that NFKC makes 18 of
        normalise("\ufdfa" * MAX_REQUEST_CHARS, now=NOW, vocabulary=VOCABULARY)


@pytest.mark.parametrize(
    "unit", ["华冻", "slaes ", "一", "1", "q1 to ", "百分之", "between 1 and ", "the ", "比不", "x"]
)
def test_the_longest_hostile_text_takes_bounded_time(unit):
    text = (unit * MAX_REQUEST_CHARS)[:MAX_REQUEST_CHARS]
    started = time.process_time()
    normalise(text, now=NOW, vocabulary=VOCABULARY)
    assert time.process_time() - started < 5


def test_packs_are_merged_and_contradictions_refused():
    extra = {"kinds": {"metric": {"values": {"profit": ["利润", "profit"]}}}, "stop_words": ["亲"]}
    vocabulary = Vocabulary.from_mapping(yaml.safe_load(YAML), extra)
    request = normalise("亲，华东上季度利润", now=NOW, vocabulary=vocabulary)
    assert [entity.values for entity in request.of_kind("metric")] == [("profit",)]
    assert request.unresolved == ()
    with pytest.raises(VocabularyInvalid, match="利润"):
        Vocabulary.from_mapping(extra, {"kinds": {"metric": {"values": {"net_profit": ["利润"]}}}})


@pytest.mark.parametrize(
    "mapping",
    [
        {"kinds": []},
        {"kinds": {"metric": {"values": {"sales": "销售额"}}}},
        {"kinds": {"metric": {"values": {"sales": ["!!"]}}}},
        {"groups": [{"kind": "city"}]},
        {"confusions": {"东": 1}},
    ],
)
def test_a_vocabulary_of_another_form_is_refused(mapping):
    with pytest.raises(VocabularyInvalid):
        Vocabulary.from_mapping(mapping)


def test_one_alias_may_belong_to_two_kinds():
    vocabulary = Vocabulary.from_mapping(
        {"kinds": {"metric": {"values": {"orders": ["orders"]}}, "table": {"values": {"orders": ["orders"]}}}}
    )
    request = normalise("orders", now=NOW, vocabulary=vocabulary)
    assert {entity.kind for entity in request.entities} == {"metric", "table"}

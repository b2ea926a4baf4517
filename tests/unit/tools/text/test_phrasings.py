"""One question asked in many ways must be understood the same; what is not understood must be said."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests.unit.tools.text.sales_words import sales_vocabulary
from tools.text.homophones import sound_alike
from tools.text.normalisation import normalise
from tools.text.request import NormalisedRequest

VOCABULARY = sales_vocabulary()
NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
CANONICAL = (
    "region=east_china,south_china metric=sales period=2025-Q4 "
    "direction=decrease threshold=>0.15ratio dimension=city"
)
PHRASINGS = yaml.safe_load(Path(__file__).with_name("phrasings.yaml").read_text(encoding="utf-8"))


def understood(text: str, now: datetime = NOW) -> NormalisedRequest:
    return normalise(text, now=now, vocabulary=VOCABULARY)


def summary(request: NormalisedRequest) -> dict[str, str]:
    """What was understood, order and wording aside; the words "compare" and "region" add nothing here."""
    found: dict[str, set[str]] = {}
    for entity in request.entities:
        if entity.kind == "comparison" or (entity.kind == "dimension" and entity.values == ("region",)):
            continue
        if entity.period is not None:
            value = entity.period.label + ("(base)" if entity.period.is_base else "")
        elif entity.quantity is not None:
            value = f"{entity.quantity.operator or ''}{entity.quantity.value}{entity.quantity.unit}"
        else:
            value = ",".join(sorted(entity.values))
        found.setdefault(entity.kind, set()).add(value)
    return {kind: ",".join(sorted(values)) for kind, values in found.items()}


def expected(line: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in line.split())


@pytest.mark.parametrize("text", PHRASINGS["canonical"])
def test_canonical_question(text):
    request = understood(text)
    assert summary(request) == expected(CANONICAL)
    assert request.unresolved == ()


@pytest.mark.parametrize(("text", "line"), [(row["text"], row["understood"]) for row in PHRASINGS["others"]])
def test_other_questions(text, line):
    request = understood(text)
    assert summary(request) == expected(line)
    assert request.unresolved == ()


@pytest.mark.parametrize(
    ("text", "kind", "mention"), [(row["text"], row["kind"], row["mention"]) for row in PHRASINGS["unclear"]]
)
def test_what_is_not_understood_is_named(text, kind, mention):
    request = understood(text)
    assert (kind, mention) in {(found.kind, found.text) for found in request.unresolved}
    assert all(correction.reason != "typo" for correction in request.corrections)


@pytest.mark.parametrize(
    ("text", "written", "meant"),
    [
        ("销受额", "销受额", "销售额"),
        ("华动区域", "华动区", "华东区"),
        ("华冻、华南", "华冻", "华东"),
        ("上个几度", "上个几度", "上个季度"),
        ("last quater", "quater", "quarter"),
        ("Shangahi", "Shangahi", "shanghai"),
        ("East Chine", "Chine", "china"),
        ("revnue", "revnue", "revenue"),
        ("eastchina", "eastchina", "east china"),
        ("thatfell", "thatfell", "that fell"),
        ("fel", "fel", "fell"),
        ("销售鹅", "销售鹅", "销售额"),
    ],
)
def test_corrections_are_on_record(text, written, meant):
    request = understood(text)
    (correction,) = request.corrections
    assert (correction.reason, correction.original, correction.replacement) == ("typo", written, meant)
    assert request.text[correction.start : correction.end] == written
    assert request.unresolved == ()
    assert request.entities[0].origin == "typo"
    assert request.entities[0].confidence < 1


@pytest.mark.parametrize(
    ("text", "written", "meant"),
    [
        ("上季度华东何华南", "何", "和"),
        ("下降朝15%", "朝", "超"),
        ("下降抄过15%", "抄过", "超过"),
        ("下降超15%的诚市", "诚市", "城市"),
    ],
)
def test_a_word_is_corrected_where_its_neighbours_speak_for_it(text, written, meant):
    request = understood(text)
    assert [(found.original, found.replacement) for found in request.corrections] == [(written, meant)]
    assert request.unresolved == ()


@pytest.mark.parametrize("text", ["何上季度", "朝15%", "抄过华东", "诚市销售额"])
def test_the_same_word_elsewhere_is_asked_about(text):
    request = understood(text)
    assert [found for found in request.corrections if found.reason == "typo"] == []
    assert request.unresolved != ()


def test_a_misspelt_place_may_stand_beside_another_misspelt_one():
    request = understood("画东和华男区域")
    assert [found.replacement for found in request.corrections] == ["华东", "华南区"]
    assert request.unresolved == ()


def test_traditional_script_is_read_as_simplified():
    request = understood("華東和華南上季度銷售額對比，找出下降超過15%的城市")
    assert summary(request) == expected(CANONICAL)
    assert [found.reason for found in request.corrections] == ["unicode_form"]


@pytest.mark.parametrize("pair", ["冻东", "难南", "度渡", "受售", "城诚"])
def test_common_characters_of_one_syllable_sound_alike(pair):
    assert sound_alike(pair[0], pair[1])


@pytest.mark.parametrize("pair", ["东南", "东东", "东a", "乾坤", "龘大"])
def test_other_characters_do_not_sound_alike(pair):
    assert not sound_alike(pair[0], pair[1])


@pytest.mark.parametrize("text", PHRASINGS["never_corrected"])
def test_a_word_that_may_be_another_is_never_corrected(text):
    request = understood(text)
    assert all(correction.reason != "typo" for correction in request.corrections)
    assert request.unresolved != ()
    assert request.entities == ()


def test_the_year_of_a_quarter_without_one_is_assumed_and_said():
    request = understood("三季度华东销售额")
    (period,) = request.of_kind("period")
    assert period.period is not None
    assert (period.period.label, period.confidence) == ("2025-Q3", 0.7)
    assert [(found.reason, found.replacement) for found in request.corrections] == [("year_assumed", "2025-Q3")]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("上季度销售额", "zh"),
        ("对比East China和South China上季度sales", "zh"),
        ("last quarter's sales", "en"),
        ("Zeige mir den Umsatz von Ostchina im letzten Quartal", "other"),
        ("先月の売上を見せてください", "other"),
        ("покажи продажи", "other"),
        ("", "other"),
        ("123 !?", "other"),
    ],
)
def test_language(text, language):
    assert understood(text).language == language


def test_json_form():
    value = understood("华东上季度销售额下降超15%").to_json()
    assert value["text"] == "华东上季度销售额下降超15%"
    threshold = value["entities"][-1]
    assert threshold == {
        "kind": "threshold",
        "values": ["0.15"],
        "text": "超15%",
        "start": 10,
        "end": 14,
        "confidence": 1.0,
        "origin": "percent",
        "quantity": {"value": "0.15", "unit": "ratio", "operator": ">", "currency": None},
    }
    assert value["entities"][1]["period"] == {
        "start": "2025-10-01",
        "end": "2026-01-01",
        "granularity": "quarter",
        "label": "2025-Q4",
        "assumed_year": False,
        "is_base": False,
    }

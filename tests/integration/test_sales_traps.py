"""Questions that look like ones the data can answer: a right answer or a question back, never another answer."""

from typing import Any

import pytest

from tests.integration.sales_desk import SalesDesk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> SalesDesk:
    return SalesDesk(data_dir=tmp_path_factory.mktemp("sales"))


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        # Single stores are not in the data; all stores together are another question.
        ("Which stores in East China fell by more than 15% in sales last quarter?", "City"),
        ("East China stores that fell by more than 15% in sales last quarter", "City"),
        ("上季度华东哪些门店销售额下降超过15%", "城市"),
        ("找出华东上季度销售额下降超过15%的门店", "城市"),
        ("上季度销售额最高的5家经销商", "城市"),
        # A list for every region, or for every month.
        ("Top 3 cities by sales in each region last quarter", "Region"),
        ("各区域上季度销售额最高的3个城市", "区域"),
        ("Top 5 cities by sales each month of Q2 2026", "each month"),
        # In each of two months, or from the one to the other?
        ("cities whose sales fell in both July 2026 and August 2026", "August 2026 versus July 2026"),
        ("2026年7月和8月销售额都下降的城市", "2026年8月与2026年7月相比"),
        ("cities whose sales fell from January to June 2026", "June 2026 versus January 2026"),
        ("cities whose sales fell in Q1 2026 vs Q3 2026", "Q3 2026 versus Q1 2026"),
        # Growth that fell is not a fall.
        ("Which cities' sales growth fell by more than 15% last quarter?", "fell"),
        ("上季度销售额增幅下降超过15%的城市", "下降"),
        # Each of two measures, or both at once?
        ("Which cities had both sales and orders fall by more than 15% last quarter?", "orders"),
        # Two filters would both hold: of East China only Shanghai would be left.
        ("compare Shanghai with East China, sales last quarter", "Sales of East China, Q3 2026"),
        ("上海和华东上季度销售额对比", "上海2026年第3季度销售额"),
        ("华东和线上上季度销售额", "线上2026年第3季度销售额"),  # not 上上季度, two quarters back
        # A share that changed, or by month.
        ("cities whose share of sales fell by more than 15% last quarter", "East China"),
        ("2026年上半年各品类每月销售额占比", "华东"),
        ("线上华东上季度销售额占比", "渠道"),
    ],
)
def test_another_question_is_never_answered_instead(desk: SalesDesk, text: str, offered: str) -> None:
    answer = desk.ask(text)
    assert answer.question
    assert offered in answer.outputs["clarify"]["suggestions"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Sales in downtown Shanghai last quarter", "downtown"),
        ("Sales in East China in the fall of 2025", "in the fall of 2025"),
        ("sales of East China this fall", "this fall"),
        ("selling price in Shanghai last quarter", "selling price"),
        ("Which products sold out last quarter in Shanghai", "sold out"),
        ("The second highest city by sales last quarter", "second"),
        ("sales per store last quarter", "per store"),
    ],
)
def test_a_word_that_only_looks_known_is_asked_about(desk: SalesDesk, text: str, said: str) -> None:
    assert f'"{said}"' in desk.ask(text).question


@pytest.mark.parametrize(
    ("text", "answer", "same_as"),
    [
        (
            "哪些门店上季度销售额下降超过15%",
            "城市",
            "哪些城市上季度销售额下降超过15%",
        ),
        (
            "Which stores fell by more than 15% in sales last quarter?",
            "City",
            "Which cities fell by more than 15% in sales last quarter?",
        ),
        ("各区域上季度销售额最高的3个城市", "城市", "上季度销售额最高的3个城市"),
        (
            "cities whose sales fell from January to June 2026",
            "June 2026 versus January 2026",
            "cities whose sales fell June 2026 versus January 2026",
        ),
        (
            "2026年7月和8月销售额都下降的城市",
            "2026年8月与2026年7月相比",
            "2026年8月与2026年7月相比销售额下降的城市",
        ),
        ("上季度销售额和订单数都下降超过15%的城市", "订单数", "上季度订单数下降超过15%的城市"),
        ("上海和华东上季度销售额对比", "上海2026年第3季度销售额", "上海2026年第3季度销售额"),
        ("对比华东和全国上季度销售额", "全国2026年第3季度销售额", "2026年第3季度销售额"),
        (
            "compare Shanghai with East China, sales last quarter",
            "Sales of East China, Q3 2026",
            "Sales of East China, Q3 2026",
        ),
        ("上季度销售额增幅下降超过15%的城市", "下降", "上季度销售额下降超过15%的城市"),
    ],
)
def test_one_word_out_of_the_suggestions_settles_it(desk: SalesDesk, text: str, answer: str, same_as: str) -> None:
    assert answer in desk.ask(text).outputs["clarify"]["suggestions"]
    answered, plain = desk.ask(text, answers=(answer,)), desk.ask(same_as)
    assert answered.question == ""
    assert answered.fields == plain.fields


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025年哪个月销售额最高", {"granularity": "month", "limit": 1, "descending": True}),
        ("Which month of 2025 had the lowest sales?", {"granularity": "month", "limit": 1, "descending": False}),
        ("华东和华南上季度销售额合计", {"dimension": None, "kind": "values"}),
        ("Sales in Shanghai and Beijing combined last quarter", {"dimension": None, "kind": "values"}),
        ("对比华东和华南上季度销售额合计", {"dimension": "region", "kind": "values"}),
        ("Which cities' sales fell by more than 15% from Q1 2026 to Q2 2026?",
         {"interval": {"start": "2026-04-01", "end": "2026-07-01"},
          "comparison": {"start": "2026-01-01", "end": "2026-04-01"}}),
        ("上季度销售额涨跌超过15%的城市",
         {"change": {"direction": "any", "threshold": "0.15", "inclusive": False}}),
        ("Sales 2024 vs 2025 by region",
         {"interval": {"start": "2025-01-01", "end": "2026-01-01"},
          "comparison": {"start": "2024-01-01", "end": "2025-01-01"}}),
        ("上季度销售额掉了15个点以上的城市",
         {"change": {"direction": "down", "threshold": "0.15", "inclusive": True}}),
        ("上海占华东上季度销售额的比例", {"kind": "share", "dimension": "city"}),
        ("East China's share of online sales last quarter", {"kind": "share", "dimension": "region"}),
        ("share of online in East China's sales last quarter", {"kind": "share", "dimension": "channel"}),
        ("Top 3 categories by share of sales last quarter", {"kind": "share", "limit": 3}),
    ],
)  # fmt: skip
def test_what_is_clear_is_answered_as_it_was_meant(desk: SalesDesk, text: str, expected: dict[str, Any]) -> None:
    answer = desk.ask(text)
    assert answer.question == ""
    intent = answer.outputs["parser"]["intent"]
    assert {name: intent[name] for name in expected} == expected
    assert answer.outputs["validator"]["agrees"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("上海占华东上季度销售额的比例", "华东2026年第3季度销售额总计"),
        ("Shanghai's share of East China sales last quarter", "Total sales of East China in Q3 2026"),
        ("各品类上季度销售额占比", "\n2026年第3季度销售额总计"),
        ("华东和华南上季度销售额合计", "华东、华南合计2026年第3季度销售额为"),
        ("Sales in Shanghai and Beijing combined last quarter", "Shanghai, Beijing together, Q3 2026: Sales"),
        ("2025年销售额最高的三个月", "销售额最高的是2025年12月"),
    ],
)
def test_the_report_says_what_a_number_is_of(desk: SalesDesk, text: str, said: str) -> None:
    assert said in desk.ask(text).markdown


def test_points_of_a_ratio_are_asked_about(desk: SalesDesk) -> None:
    assert "2个点" in desk.ask("上季度退货率上升超过2个点的城市").question


def test_a_best_seller_without_a_measure_is_asked_about_by_measure(desk: SalesDesk) -> None:
    answer = desk.ask("上季度卖得最好的商品")
    assert answer.outputs["clarify"]["suggestions"][0] == "销售额"
    answered = desk.ask("上季度卖得最好的商品", answers=("销售额",))
    assert answered.fields == desk.ask("上季度销售额最高的商品").fields


def test_all_words_that_were_not_understood_are_named_in_one_sentence(desk: SalesDesk) -> None:
    assert "我不明白“毛利”、“库存”指的是什么。" in desk.ask("华东上季度毛利和库存").question


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("对比华动区域和华南上季度消售额", ("“华动区”读作“华东区”", "“消售额”读作“销售额”")),
        ("sales of East Chine last quater", ('"Chine" as "china"', '"quater" as "quarter"')),
    ],
)
def test_what_was_read_as_something_else_is_said_in_the_answer(
    desk: SalesDesk, text: str, said: tuple[str, ...]
) -> None:
    answer = desk.ask(text)
    assert all(words in answer.outputs["reporter"]["assumptions"][0] for words in said)
    assert all(words in answer.markdown for words in said)

"""Sales questions, from words to a report, against queries written by hand on a copy of the database."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from agents.packs.sales.dataset import ensure
from tests.integration.sales_desk import Answer, SalesDesk

BEIJING = timezone(timedelta(hours=8))
IN_OCTOBER = datetime(2026, 10, 8, 9, 30, tzinfo=BEIJING)
IN_JANUARY = datetime(2026, 1, 5, 0, 30, tzinfo=BEIJING)
"""Just after a quarter and a year began: the last quarter is one of the year before."""

QUARTERS = {
    IN_OCTOBER: (("2026-07-01", "2026-10-01"), ("2026-04-01", "2026-07-01")),
    IN_JANUARY: (("2025-10-01", "2026-01-01"), ("2025-07-01", "2025-10-01")),
}

FELL_15 = [
    "对比华东和华南区域上季度销售额，找出下降超15%的城市",
    "华东和华南上个季度的营业额比一比，哪些城市跌了超过百分之十五？",
    "请帮我看看上季度华东、华南的销售额对比，并列出降幅超过15%的城市",
    "上季度东区和南区的营收比较一下，下滑超过一成半的城市有哪些",
    "对笔华冬和华南区域上季度消售额，找出下降超15%的城市",
    "对比华东和华南区域上季渡销售鄂，找出下绛超15%的城市",
    "对比华东和华南区域上季度销售额，找出下降大于15％的城市",
    "Compare last quarter's sales of East China and South China; find the cities that fell by more than 15%",
    "Compaer sales of East Chna and South China last quartr and list cities down more than 15 percent",
    "Which cities in East China and South China saw revenue drop by over 15% last quarter?",
    "compare east and south china revenue for the previous quarter; which cities declined over fifteen percent?",
    "Last quarter, East China versus South China turnover: list cities whose sales decreased by more than 15 %.",
]


class Oracle:
    """The same data, asked with SQL that nobody generated."""

    AMOUNT = "o.quantity * o.unit_price * (1 - o.discount)"

    def __init__(self, path: Path) -> None:
        self._connection = duckdb.connect(str(path), read_only=True)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql.replace("AMOUNT", self.AMOUNT)).fetchall()

    def sums(self, group: str, days: tuple[str, str], where: str = "true") -> dict[str, Decimal]:
        found = self.rows(
            f"SELECT {group}, sum(AMOUNT)"
            " FROM order_line o JOIN city c USING (city_code) JOIN product p USING (product_code)"
            f" WHERE o.ordered_on >= DATE '{days[0]}' AND o.ordered_on < DATE '{days[1]}' AND {where} GROUP BY 1"
        )
        return {str(name): Decimal(value) for name, value in found}

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sales")


@pytest.fixture(scope="module")
def desk(data_dir: Path) -> SalesDesk:
    return SalesDesk(data_dir=data_dir)


@pytest.fixture(scope="module")
def oracle(data_dir: Path) -> Iterator[Oracle]:
    copy = data_dir / "copy.duckdb"
    shutil.copy(ensure(data_dir / "datasets"), copy)
    oracle = Oracle(copy)
    yield oracle
    oracle.close()


def decimals(answer: Answer, key: str, value: str, *, part: str = "rows") -> dict[str, Decimal]:
    assert answer.question == ""
    return {str(row[key]): Decimal(row[value]) for row in answer.fields[part]}


@pytest.mark.parametrize("now", [IN_OCTOBER, IN_JANUARY], ids=["october", "january"])
@pytest.mark.parametrize("text", FELL_15)
def test_cities_that_fell_are_exactly_those_of_an_independent_query(
    desk: SalesDesk, oracle: Oracle, text: str, now: datetime
) -> None:
    days, before = QUARTERS[now]
    where = "c.region_code IN ('east_china', 'south_china')"
    current, base = (oracle.sums("c.city_code", span, where) for span in (days, before))
    fell = {
        city: current.get(city, Decimal(0))
        for city, value in base.items()
        if value > 0 and Fraction(current.get(city, Decimal(0)) - value) / Fraction(value) < Fraction(-15, 100)
    }
    answer = desk.ask(text, now=now)
    assert fell, "a quarter without such a city would prove nothing"
    assert decimals(answer, "city", "sales_current") == fell
    assert decimals(answer, "city", "sales_base") == {city: base[city] for city in fell}
    assert decimals(answer, "region", "sales_current", part="totals") == oracle.sums("c.region_code", days, where)
    assert decimals(answer, "region", "sales_base", part="totals") == oracle.sums("c.region_code", before, where)
    assert answer.fields["interval"] == {"start": days[0], "end": days[1]}
    assert answer.fields["base_interval"] == {"start": before[0], "end": before[1]}
    *corrected, assumption = answer.outputs["reporter"]["assumptions"]
    assert before[0] in assumption
    typos = [part for part in answer.request["corrections"] if part["reason"] == "typo"]
    assert len(corrected) == bool(typos)
    assert all(part["original"] in corrected[0] and part["replacement"] in corrected[0] for part in typos)


def test_a_fall_of_exactly_the_threshold_counts_only_for_at_least(desk: SalesDesk, oracle: Oracle) -> None:
    days, before = QUARTERS[IN_OCTOBER]
    current, base = (oracle.sums("c.city_code", span) for span in (days, before))
    exactly = {
        city
        for city in base
        if base[city] and (current.get(city, Decimal(0)) - base[city]) / base[city] == Decimal("-0.15")
    }
    assert exactly == {"shenzhen"}
    more = decimals(desk.ask("上季度销售额下降超过15%的城市"), "city", "sales_current")
    least = decimals(desk.ask("上季度销售额下降至少15%的城市"), "city", "sales_current")
    assert set(least) - set(more) == exactly
    assert (
        decimals(desk.ask("Which cities' sales fell by 15% or more last quarter?"), "city", "sales_current")
        == least
    )


def test_cities_that_cannot_be_compared_are_named_not_counted(desk: SalesDesk) -> None:
    answer = desk.ask(FELL_15[0])
    assert [row["city"] for row in answer.fields["not_comparable"]] == ["haikou"]
    assert "haikou" not in decimals(answer, "city", "sales_current")
    assert "海口" in answer.markdown


@pytest.mark.parametrize(
    "text",
    [
        "2026年第二季度销售额最高的5个商品",
        "Top 5 products by sales in Q2 2026",
        "top five prodcts by revenue in the second quarter of 2026",
    ],
)
def test_ranking(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    sums = oracle.sums("o.product_code", ("2026-04-01", "2026-07-01"))
    best = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:5]
    found = decimals(desk.ask(text), "product", "sales")
    assert list(found.items()) == best


def test_lowest_first(desk: SalesDesk, oracle: Oracle) -> None:
    sums = oracle.sums("c.region_code", ("2026-07-01", "2026-10-01"))
    answer = desk.ask("哪个区域上季度销售额最低")
    assert next(iter(decimals(answer, "region", "sales"))) == min(sums, key=lambda name: sums[name])
    assert "销售额最低的是东北" in answer.markdown


@pytest.mark.parametrize("text", ["上海上个月的销售额是多少", "What were Shanghai's sales last month?"])
def test_total(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    expected = oracle.sums("c.city_code", ("2026-09-01", "2026-10-01"), "c.city_code = 'shanghai'")["shanghai"]
    [row] = desk.ask(text).fields["rows"]
    assert Decimal(row["sales"]) == expected


@pytest.mark.parametrize("text", ["华东2025年每月销售额趋势", "Monthly sales trend of East China in 2025"])
def test_trend(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    sums = oracle.sums(
        "strftime(o.ordered_on, '%Y-%m-01')", ("2025-01-01", "2026-01-01"), "c.region_code = 'east_china'"
    )
    found = decimals(desk.ask(text), "month", "sales")
    assert list(found.items()) == sorted(sums.items())
    assert len(found) == 12


@pytest.mark.parametrize("text", ["深圳2026年第三季度的客单价", "Average order value in Shenzhen in Q3 2026"])
def test_average_order_value(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    [(amount, orders)] = oracle.rows(
        "SELECT sum(AMOUNT), count(DISTINCT order_id) FROM order_line o WHERE city_code = 'shenzhen'"
        " AND ordered_on >= DATE '2026-07-01' AND ordered_on < DATE '2026-10-01'"
    )
    [row] = desk.ask(text).fields["rows"]
    assert abs(Decimal(row["average_order_value"]) - Decimal(amount) / orders) <= Decimal("0.00005")


@pytest.mark.parametrize(
    "text", ["各品类上季度销售额占比", "What share of last quarter's sales came from each category?"]
)
def test_share(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    sums = oracle.sums("p.category", ("2026-07-01", "2026-10-01"))
    whole = sum(sums.values())
    answer = desk.ask(text)
    assert decimals(answer, "category", "sales") == sums
    for name, share in decimals(answer, "category", "share").items():
        assert abs(share - sums[name] / whole) <= Decimal("0.0000005")


def test_share_of_one_member_is_of_the_whole(desk: SalesDesk, oracle: Oracle) -> None:
    sums = oracle.sums("c.region_code", ("2026-07-01", "2026-10-01"))
    [share] = decimals(desk.ask("华东占全国上季度销售额的比例"), "region", "share").values()
    assert abs(share - sums["east_china"] / sum(sums.values())) <= Decimal("0.0000005")


@pytest.mark.parametrize(
    "text",
    [
        "北上广深上季度订单数同比增长超过10%的城市",
        "In which of 北上广深 did orders grow by more than 10% last quarter year over year?",
    ],
)
def test_growth_against_the_year_before(desk: SalesDesk, oracle: Oracle, text: str) -> None:
    def orders(start: str, end: str) -> dict[str, int]:
        return dict(
            oracle.rows(
                "SELECT city_code, count(DISTINCT order_id) FROM order_line"
                " WHERE city_code IN ('beijing', 'shanghai', 'guangzhou', 'shenzhen')"
                f" AND ordered_on >= DATE '{start}' AND ordered_on < DATE '{end}' GROUP BY 1"
            )
        )

    now, before = orders("2026-07-01", "2026-10-01"), orders("2025-07-01", "2025-10-01")
    grew = {
        city: Decimal(now[city])
        for city in now
        if Fraction(now[city] - before[city], before[city]) > Fraction(1, 10)
    }
    assert decimals(desk.ask(text), "city", "orders_current") == grew


def test_two_named_quarters_are_compared(desk: SalesDesk, oracle: Oracle) -> None:
    where = "c.region_code = 'east_china'"
    [row] = desk.ask("2026年Q2和Q3华东的销售额对比").fields["rows"]
    assert (
        Decimal(row["sales_current"])
        == oracle.sums("c.region_code", ("2026-07-01", "2026-10-01"), where)["east_china"]
    )
    assert (
        Decimal(row["sales_base"])
        == oracle.sums("c.region_code", ("2026-04-01", "2026-07-01"), where)["east_china"]
    )


def test_a_year_that_is_not_over_is_cut_and_said_so(desk: SalesDesk, oracle: Oracle) -> None:
    [expected] = oracle.sums("1", ("2026-01-01", "2026-10-01")).values()
    answer = desk.ask("今年销售额")
    [row] = answer.fields["rows"]
    assert Decimal(row["sales"]) == expected
    assert "2026-09-30" in answer.outputs["reporter"]["assumptions"][0]


@pytest.mark.parametrize(
    "text", [*FELL_15[:1], *FELL_15[7:8], "各品类上季度销售额占比", "Top 5 products by sales in Q2 2026"]
)
def test_every_claim_has_a_source_and_the_read_is_on_record(desk: SalesDesk, text: str) -> None:
    answer = desk.ask(text)
    report = answer.outputs["reporter"]
    executed = answer.outputs["executor"]
    hashes = [source["sha256"] for source in report["sources"]]
    assert hashes[: len(executed["results"])] == [result["sha256"] for result in executed["results"]]
    assert report["sources"][-1]["kind"] == "document"
    [entry] = [entry for key, entry in desk.notebook.entries.items() if key == "t-1/7"]
    assert entry.caller == "ann"
    assert answer.outputs["validator"]["cells_checked"] > 0
    assert answer.outputs["validator"]["rows_read"] > 100

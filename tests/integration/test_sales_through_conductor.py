"""Sales questions as callers ask them: over gRPC, through the conductor, against SQL that stands here.

`test_sales_answers` holds the pack's agents to its own queries; here the whole server answers, and what it says is
compared with two queries per quarter that share no code with it.
"""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import task_pb2
from tests.integration.server import ROOT, Running, serving

LIMIT = timedelta(seconds=120)
OCTOBER = datetime(2026, 10, 15, 9, tzinfo=UTC)
JANUARY = datetime(2026, 1, 5, tzinfo=UTC)

PHRASINGS = [
    "对比华东和华南区域上季度销售额，找出下降超15%的城市",
    "上季度华东、华南两个大区的销售额，哪些城市跌幅超过15%？",
    "把华南和华东上一季度的营收对比一下，列出下跌超过百分之十五的城市",
    "请对比东区、南区上个季度营业额，找出下滑超过15％的城市",
    "对必华东和华男区域上季度销售额，找出下降超15%的城市",
    "对比华东和华南区域上季度肖售额，找出下将超15%的城市",
    "Compare last quarter's sales of East China and South China and find the cities that fell by more than 15%",
    "Which cities in South China and East China had sales drop more than 15 percent last quarter?",
    "For the previous quarter, compare East China with South China revenue and list cities down over 15%",
    "Comprae last quater's slaes of East China and South Chna and find the cites that fell by more than 15%",
    "find cities in east china and south china whose revenue declined by over fifteen percent last quarter",
    "Last quarter: sales in East China vs South China. Which cities decreased by more than 15%?",
]

FELL = """
SELECT city_code, present, past FROM (
    SELECT l.city_code,
           coalesce(sum(CASE WHEN l.ordered_on >= $middle THEN l.amount END), 0) AS present,
           sum(CASE WHEN l.ordered_on < $middle THEN l.amount END) AS past
    FROM (SELECT *, quantity * unit_price * (1 - discount) AS amount FROM order_line) AS l
    WHERE l.ordered_on >= $start AND l.ordered_on < $end
      AND l.city_code IN (SELECT city_code FROM city WHERE region_code IN ('east_china', 'south_china'))
    GROUP BY l.city_code
) WHERE past > 0 AND 100 * present < 85 * past
"""
QUARTERS = {
    OCTOBER: {"start": "2026-04-01", "middle": "2026-07-01", "end": "2026-10-01"},
    # The last quarter began in the year before.
    JANUARY: {"start": "2025-07-01", "middle": "2025-10-01", "end": "2026-01-01"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("sales"), packs=ROOT / "agents" / "packs") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Client]:
    with Client(Address.of(server.address)) as client:
        yield client


@pytest.fixture(scope="module")
def fallen(server: Running, client: Client) -> dict[datetime, dict[str, tuple[Decimal, Decimal]]]:
    """City to (sales, sales before), for each moment, by hand-written SQL on a copy of the database."""
    client.wait(client.submit(PHRASINGS[0], as_of=OCTOBER).task_id, time_limit=LIMIT)
    (database,) = (server.data / "datasets").glob("sales-*.duckdb")
    copy = server.data / "copy.duckdb"
    shutil.copy(database, copy)
    with duckdb.connect(str(copy), read_only=True) as connection:
        return {
            moment: {
                city: (Decimal(present), Decimal(past))
                for city, present, past in connection.execute(FELL, days).fetchall()
            }
            for moment, days in QUARTERS.items()
        }


def _rows(task: task_pb2.Task) -> dict[str, tuple[Decimal, Decimal]]:
    assert task_status_name(task.status) == "succeeded", (task.question.text, task.error)
    rows: list[dict[str, Any]] = json.loads(task.result.fields_json)["rows"]
    return {row["city"]: (Decimal(row["sales_current"]), Decimal(row["sales_base"])) for row in rows}


@pytest.mark.parametrize("moment", [OCTOBER, JANUARY], ids=["october", "quarter-boundary"])
def test_twelve_phrasings_have_the_answer_of_an_independent_query(
    client: Client, fallen: dict[datetime, dict[str, tuple[Decimal, Decimal]]], moment: datetime
) -> None:
    expected = fallen[moment]
    assert len(expected) >= 2, "nearly nothing fell: nothing would be proven"
    assert fallen[OCTOBER] != fallen[JANUARY]
    ids = {text: client.submit(text, as_of=moment).task_id for text in PHRASINGS}
    for text, task_id in ids.items():
        task = client.wait(task_id, time_limit=LIMIT)
        assert _rows(task) == expected, text
        result = task.result
        assert "[Source: " in result.answer_markdown, text
        assert {source.id for source in result.sources} >= {"S1", "S2"}
        assert len({(source.sha256, source.location) for source in result.sources}) == len(result.sources)
        assert len(result.snapshot_sha256) == 64
        assert task.reward.final > 0.9


@pytest.mark.parametrize(
    ("text", "nonsense", "answer"),
    [
        ("对比华东和火星区域上季度销售额，找出下降超15%的城市", "金星", "华南"),
        (
            "Compare last quarter's sales of East China and Atlantis; find the cities that fell by more than 15%",
            "Lemuria",
            "South China",
        ),
    ],
)
def test_what_the_data_does_not_hold_is_asked_about_until_it_is_clear(
    client: Client,
    fallen: dict[datetime, dict[str, tuple[Decimal, Decimal]]],
    text: str,
    nonsense: str,
    answer: str,
) -> None:
    task = client.wait(client.submit(text, as_of=OCTOBER).task_id, time_limit=LIMIT)
    assert task_status_name(task.status) == "waiting_input"
    first = task.question
    assert first.suggestions
    after = client.answer(task.task_id, nonsense).last_sequence
    task = _settled(client, task.task_id, after)
    assert task_status_name(task.status) == "waiting_input", "it guessed"
    assert nonsense in task.question.text
    assert task.question.question_id != first.question_id
    assert not task.HasField("result")
    after = client.answer(task.task_id, answer).last_sequence
    assert _rows(_settled(client, task.task_id, after)) == fallen[OCTOBER]


def test_a_caller_who_never_answers_to_the_point_is_told_so_in_the_end(client: Client) -> None:
    task = client.wait(client.submit("火星上季度销售额", as_of=OCTOBER).task_id, time_limit=LIMIT)
    asked = 0
    while task_status_name(task.status) == "waiting_input":
        asked += 1
        assert asked <= 10, "it asks for ever"
        after = client.answer(task.task_id, f"金星{asked}").last_sequence
        task = _settled(client, task.task_id, after)
    assert task_status_name(task.status) == "failed"
    assert asked == 5
    assert task.error.message
    assert task.error.next_step
    assert not task.HasField("result")
    kinds = [response.event.WhichOneof("payload") for response in client.watch(task.task_id)]
    agents = {
        response.event.step_started.agent
        for response in client.watch(task.task_id)
        if response.event.WhichOneof("payload") == "step_started"
    }
    assert kinds.count("question_asked") == asked
    assert "executor" not in agents


def _settled(client: Client, task_id: str, after: int) -> task_pb2.Task:
    """The task once it has ended or asks again, after event number `after`."""
    for response in client.watch(task_id, after_sequence=after, time_limit=LIMIT):
        if response.event.WhichOneof("payload") in ("question_asked", "task_succeeded", "task_failed"):
            break
    return client.get(task_id)

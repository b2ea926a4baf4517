"""Agents that misbehave and plans that cannot be: the task ends with a typed error, the server goes on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from tests.cases.hostile_agents import OUTPUTS
from tests.cases.pages import all_packs
from tests.integration.server import Running, serving

WITHIN = timedelta(seconds=60)
CODES = {"invented_source": "ANSWER_WITHOUT_SOURCE"}
BROKEN = sorted(set(OUTPUTS) - {"good"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("hostile")
    with all_packs(folder / "packs") as packs, serving(folder / "data", packs=packs) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(Address.of(server.address)) as client:
        before = client.submit("relay the words please").task_id
        yield client
        after = client.submit("relay the words please").task_id
        for task_id in (before, after):
            assert task_status_name(client.wait(task_id, time_limit=WITHIN).status) == "succeeded"


def test_every_broken_output_is_refused_with_a_typed_error_and_stops_nobody_else(client: Client) -> None:
    tasks = {word: client.submit(f"utter {word}").task_id for word in [*BROKEN, "good"]}
    seen = {word: client.wait(task_id, time_limit=WITHIN) for word, task_id in tasks.items()}
    good = seen.pop("good")
    assert (task_status_name(good.status), good.result.answer_markdown) == (
        "succeeded",
        "All is well. [Source: S1]",
    )
    wrong = {
        word: (task_status_name(task.status), task.error.code, task.error.next_step)
        for word, task in seen.items()
        if task_status_name(task.status) not in ("failed", "waiting_review")
        or task.error.code != CODES.get(word, "OUTPUT_CONTRACT_BROKEN")
        or not task.error.message
        or not task.error.next_step
        or len(task.error.message) > 2000
    }
    assert wrong == {}


@pytest.mark.parametrize("word", ["exit", "crash", "recursion"])
def test_an_agent_that_crashes_takes_only_its_step_along(client: Client, word: str) -> None:
    task = client.wait(client.submit(f"utter {word}").task_id, time_limit=WITHIN)
    assert task_status_name(task.status) in ("failed", "waiting_review")
    assert task.error.code == "AGENT_CRASHED"
    assert task.error.next_step
    assert len(task.error.message) < 2000


@pytest.mark.parametrize("text", ["circulate for ever", "swallow yourself", "dangle in the air"])
def test_a_plan_with_a_cycle_is_refused_before_a_step_runs(client: Client, text: str) -> None:
    task = client.wait(client.submit(text).task_id, time_limit=WITHIN)
    assert task_status_name(task.status) == "failed"
    assert task.error.code in ("PLAN_INVALID", "PLAN_REJECTED")
    assert task.error.next_step
    assert task.error.evidence
    assert not task.steps
    kinds = {response.event.WhichOneof("payload") for response in client.watch(task.task_id)}
    assert "plan_refused" in kinds
    assert "step_started" not in kinds

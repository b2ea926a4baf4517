"""Plans that cannot be: the task ends with a typed error, the server goes on.

Agents that misbehave are in tests/e2e/hostile.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from tests.cases.pages import all_packs
from tests.integration.server import Running, serving

WITHIN = timedelta(seconds=60)


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

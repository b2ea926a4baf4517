"""`kill -9` of the real server at random moments: no accepted task is lost and no finished step runs again."""

import random
import threading
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from podium.client import Client
from podium.status import task_status_name
from podium.v1 import event_pb2, task_pb2, task_pb2_grpc
from tests.integration.server import ServerProcess

KILLS = 20


@pytest.mark.slow
def test_a_server_that_is_killed_20_times_finishes_every_task_once(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    # Dying this often is the test's doing, not a step's that kills its server.
    server = ServerProcess(tmp_path / "data", environment={"PODIUM_MAX_INTERRUPTIONS": "1000"})
    told: dict[str, str] = {}
    wanted: list[str] = []
    for _ in range(KILLS):
        server.start()
        # One task that is on its way when the server dies, and one that is handed in at that very moment.
        wanted += [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(2)]
        _submit(server, wanted[-2], told)
        threading.Event().wait(chance.uniform(0, 0.45))
        handing_in = threading.Thread(target=_submit, args=(server, wanted[-1], told))
        handing_in.start()
        threading.Event().wait(chance.uniform(0, 0.01))
        server.kill()
        handing_in.join(30)

    server.start()
    with Client(server.address) as client:
        for request_id in wanted:
            again = client.submit("relay the words please", request_id=request_id)
            assert told.get(request_id, again.task_id) == again.task_id, f"an accepted task was lost; seed {seed}"
            told[request_id] = again.task_id
        for task_id in told.values():
            task = client.wait(task_id)
            assert task_status_name(task.status) == "succeeded", (task, seed)
            assert task.result.answer_markdown == "There are 4 words. [Source: S1]"
        assert len({task.task_id for task in client.list(page_size=500).tasks}) == len(wanted)
        logs = {task_id: [response.event for response in client.watch(task_id)] for task_id in told.values()}
    assert server.stop() == 0

    asked = Counter((server.data / "marks" / "asked").read_text().split())
    for task_id, events in logs.items():
        assert [event.header.sequence for event in events] == list(range(1, len(events) + 1))
        _check_steps(events, seed)
        marking = [event.step_started for event in events if event.step_started.agent == "relay_mark"]
        keys = {start.idempotency_key for start in marking}
        assert len(keys) == 1
        # As often as the log says it was asked, at most: what had happened was not done again.
        assert 1 <= asked[keys.pop()] <= len(marking), (task_id, seed)
    assert len(list((server.data / "marks").iterdir())) == len(told) + 1
    interrupted = sum(_starts(events) > 4 for events in logs.values())
    assert interrupted >= 3, f"hardly any kill met a running task; seed {seed}"


def _submit(server: ServerProcess, request_id: str, told: dict[str, str]) -> None:
    """Hand a task in without retries and note its id; nothing when the server died before it answered."""
    with grpc.insecure_channel(server.target, options=[("grpc.enable_retries", 0)]) as channel:
        request = task_pb2.SubmitTaskRequest(request_id=request_id, text="relay the words please")
        try:
            task = task_pb2_grpc.TaskServiceStub(channel).SubmitTask(request, timeout=20).task
        except grpc.RpcError:
            return
        told[request_id] = task.task_id


def _starts(events: Sequence[event_pb2.Event]) -> int:
    return sum(event.WhichOneof("payload") == "step_started" for event in events)


def _check_steps(events: Sequence[event_pb2.Event], seed: int) -> None:
    finished: set[int] = set()
    ended = 0
    for event in events:
        kind = event.WhichOneof("payload")
        if kind == "step_started":
            assert event.header.step not in finished, f"a finished step ran again; seed {seed}"
        elif kind == "step_succeeded":
            assert event.header.step not in finished, f"a step finished twice; seed {seed}"
            finished.add(event.header.step)
        elif kind == "task_succeeded":
            ended += 1
    assert finished == {0, 1, 2, 3}
    assert ended == 1

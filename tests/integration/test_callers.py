"""Callers of one server: what is whose, what each may have, and how what is taken back ends at once."""

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cloud.audit import LedgerAuditLog
from cloud.auth.tokens import LEEWAY
from cloud.services.live import LOOK_EVERY
from podium.client import Client
from podium.errors import (
    InvalidRequest,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    PodiumError,
    StorageFull,
    Unauthenticated,
)
from podium.identity.enrolling import enroll
from podium.link import Address, MachineIdentity, sync_channel
from podium.rpc_status import from_rpc_error
from podium.v1 import (
    edge_pb2,
    edge_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    status_pb2,
    task_pb2,
    task_pb2_grpc,
)
from tests.integration.server import Running, serving

RELAY = "relay the words please"
UNCLEAR = "hello there"
NOTICED_WITHIN = timedelta(seconds=5)


@dataclass
class Clock:
    """The real clock, and what it was put forward by."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("callers") / "data", insecure_loopback=False) as running:
        yield running


@contextlib.contextmanager
def caller(server: Running, name: str, role: str = "caller", **lifetime: float) -> Iterator[Client]:
    """A client with a token of its own."""
    with Client(server.tls_address()) as operator:
        issued = operator.issue_token(name, [role], lifetime=timedelta(**lifetime) if lifetime else None)
    with Client(server.tls_address(issued.token)) as client:
        yield client


def _refusal(call: object, *arguments: object, **named: object) -> tuple[str, str]:
    with pytest.raises(PodiumError) as caught:
        call(*arguments, **named)  # type: ignore[operator]
    return caught.value.code, caught.value.message


def test_a_caller_knows_nothing_of_others_tasks(server: Running) -> None:
    with caller(server, "ann") as ann, caller(server, "bob") as bob:
        task = ann.submit(UNCLEAR)
        assert task.caller == "ann"
        assert ann.wait(task.task_id).status == status_pb2.TASK_STATUS_WAITING_INPUT
        question = ann.get(task.task_id).question.question_id
        nobody = str(uuid.uuid4())
        for call in (
            lambda task_id: bob.get(task_id),
            lambda task_id: list(bob.watch(task_id)),
            lambda task_id: bob.cancel(task_id),
            lambda task_id: bob.answer(task_id, "East China", question_id=question),
        ):
            code, message = _refusal(call, task.task_id)
            # Word for word what is said of a task that is not there.
            assert (code, message.replace(task.task_id, nobody)) == _refusal(call, nobody)
            assert code == "NOT_FOUND"
        assert [listed.task_id for listed in bob.list().tasks] == []
        with pytest.raises(InvalidRequest, match="page_token"):
            bob.list(page_token=task.task_id)
        assert [listed.task_id for listed in ann.list(page_size=1).tasks] == [task.task_id]
        assert ann.cancel(task.task_id).status == status_pb2.TASK_STATUS_CANCELLED


def test_a_request_id_is_a_callers_own(server: Running) -> None:
    request_id = str(uuid.uuid4())
    with caller(server, "ann") as ann, caller(server, "bob") as bob:
        hers, his = (client.submit(RELAY, request_id=request_id) for client in (ann, bob))
        assert hers.task_id != his.task_id
        assert ann.submit(RELAY, request_id=request_id).task_id == hers.task_id
        assert bob.get(his.task_id).request_id == request_id
        assert ann.wait(hers.task_id).status == status_pb2.TASK_STATUS_SUCCEEDED


def test_a_viewer_sees_everything_and_changes_nothing(server: Running) -> None:
    with caller(server, "ann") as ann, caller(server, "eve", "viewer") as eve:
        task_id = ann.submit(UNCLEAR).task_id
        asked = ann.wait(task_id)
        assert eve.get(task_id).caller == "ann"
        assert next(iter(eve.watch(task_id))).event.task_accepted.text == UNCLEAR
        assert eve.list(page_size=1).tasks[0].task_id == task_id
        for call in (
            lambda: eve.submit(RELAY),
            lambda: eve.cancel(task_id),
            lambda: eve.answer(task_id, "East", question_id=asked.question.question_id),
        ):
            with pytest.raises(PermissionDenied):
                call()
        with caller(server, "olga", "operator") as olga:
            assert olga.cancel(task_id, "by the operator").status == status_pb2.TASK_STATUS_CANCELLED


def test_who_both_views_and_asks_may_see_but_not_touch_what_is_anothers(server: Running) -> None:
    with Client(server.tls_address()) as operator:
        token = operator.issue_token("vic", ["viewer", "caller"]).token
        task_id = operator.submit(UNCLEAR).task_id
    with Client(server.tls_address(token)) as vic:
        assert vic.get(task_id).caller == "operator"
        with pytest.raises(PermissionDenied, match="only read"):
            vic.cancel(task_id)


def test_a_reviewer_lists_and_settles_and_reads_no_tasks(server: Running) -> None:
    with caller(server, "ann") as ann, caller(server, "rita", "reviewer") as rita:
        task_id = ann.submit("stumble please").task_id
        assert ann.wait(task_id).status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert task_id in [review.task_id for review in rita.reviews()]
        with pytest.raises(PermissionDenied):
            ann.reviews()
        with pytest.raises(PermissionDenied):
            rita.get(task_id)
        rita.resolve_review(task_id, status_pb2.REVIEW_VERDICT_REJECTED, note="prose")
        events = [response.event for response in ann.watch(task_id)]
        resolved = [event for event in events if event.WhichOneof("payload") == "review_resolved"]
        assert [event.review_resolved.reviewer for event in resolved] == ["rita"]


def test_roles_are_recorded_with_those_they_imply_and_reach_the_plan(server: Running) -> None:
    with caller(server, "olga", "operator") as olga:
        task_id = olga.submit(RELAY).task_id
        events = [response.event for response in olga.watch(task_id)]
        # Its agents ask for the role caller, which an operator has without its token naming it.
        assert events[-1].WhichOneof("payload") == "task_succeeded"
        assert list(events[0].task_accepted.caller_roles) == ["caller", "operator", "reviewer", "viewer"]
        request = next(event for event in events if event.WhichOneof("payload") == "request_normalized")
        assert b'"name":"olga"' in request.request_normalized.request_json


# What is taken back ends.


@dataclass
class Watching:
    """Somebody who watches a task that stands still."""

    client: Client
    task_id: str
    started: threading.Event = field(default_factory=threading.Event)
    ended_with: PodiumError | None = None

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        assert self.started.wait(20)

    def _watch(self) -> None:
        try:
            for _ in self.client.watch(self.task_id):
                self.started.set()
        except PodiumError as error:
            self.ended_with = error
        self.started.set()

    def end_s(self) -> float:
        began_s = time.monotonic()
        self.thread.join(20)
        assert not self.thread.is_alive()
        return time.monotonic() - began_s


def test_taking_tokens_back_ends_what_is_open_and_nobody_elses(server: Running) -> None:
    with caller(server, "ann") as ann, caller(server, "bob") as bob, Client(server.tls_address()) as operator:
        hers, his = ann.submit(UNCLEAR).task_id, bob.submit(UNCLEAR).task_id
        ann.wait(hers)
        bob.wait(his)
        watching, other = Watching(ann, hers), Watching(bob, his)
        revoked = operator.revoke_tokens("ann", reason="left")
        assert revoked.ended_calls == 1
        assert watching.end_s() < NOTICED_WITHIN.total_seconds()
        assert isinstance(watching.ended_with, Unauthenticated)
        with pytest.raises(Unauthenticated, match="taken back"):
            ann.get(hers)
        assert other.thread.is_alive()
        bob.cancel(his)
        other.end_s()
        assert other.ended_with is None
    with caller(server, "ann") as again:  # issued after the revocation: good, and the tasks are still hers
        assert again.cancel(hers).status == status_pb2.TASK_STATUS_CANCELLED


def test_a_stream_that_nobody_reads_ends_too(server: Running) -> None:
    size_bytes = 24 * 2**20
    with caller(server, "sloth") as sloth, Client(server.tls_address()) as operator:
        blob = sloth.upload_bytes(b"\7" * size_bytes, media_type="application/octet-stream")
        pieces = iter(sloth.download(blob.sha256))
        read = [len(next(pieces))]
        # The server now waits in the middle of a write for somebody who does not read on.
        assert operator.revoke_tokens("sloth").ended_calls == 1
        with pytest.raises(Unauthenticated):
            read.extend(map(len, pieces))
        assert sum(read) < size_bytes
        assert operator.revoke_tokens("sloth").ended_calls == 0


def test_tokens_that_the_ledger_does_not_know_of_are_taken_back_and_that_is_said(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LedgerAuditLog, entry: object) -> None:
        raise StorageFull("no room left for the ledger")

    with caller(server, "fred") as fred, Client(server.tls_address()) as operator:
        with monkeypatch.context() as patched:
            patched.setattr(LedgerAuditLog, "append", full)
            with pytest.raises(StorageFull) as refused:
                operator.revoke_tokens("fred")
        assert "are taken back" in refused.value.next_step
        with pytest.raises(Unauthenticated, match="taken back"):
            fred.list()
        operator.revoke_tokens("fred")


def test_who_takes_back_their_own_tokens_is_told_so(server: Running) -> None:
    with caller(server, "adam", "administrator") as adam:
        assert adam.revoke_tokens("adam").ended_calls == 0
        with pytest.raises(Unauthenticated):
            adam.list()


def test_a_stream_ends_when_its_token_does(tmp_path: Path) -> None:
    clock = Clock()
    with (
        serving(tmp_path / "data", insecure_loopback=False, clock=clock, task_limit_seconds=86400) as server,
        caller(server, "ann", minutes=10) as ann,
    ):
        task_id = ann.submit(UNCLEAR).task_id
        ann.wait(task_id)
        watching = Watching(ann, task_id)
        clock.ahead = timedelta(minutes=10) + LEEWAY + timedelta(seconds=1)
        assert watching.end_s() < NOTICED_WITHIN.total_seconds()
        assert isinstance(watching.ended_with, Unauthenticated)
        with pytest.raises(Unauthenticated, match="expired"):
            ann.get(task_id)
    assert LOOK_EVERY < NOTICED_WITHIN


def test_revoking_a_device_ends_its_stream_and_its_tasks_are_its_own(server: Running, tmp_path: Path) -> None:
    with sync_channel(server.tls_address()) as channel:
        identities = identity_pb2_grpc.IdentityServiceStub(channel)
        kind = identity_pb2.IDENTITY_KIND_DEVICE
        create = identity_pb2.CreateEnrolmentTokenRequest(kind=kind, name="pi-7")
        token = identities.CreateEnrolmentToken(create, timeout=10).token
        enroll(server.address, token, tmp_path / "pi", kind="device", name="pi-7", clock=lambda: datetime.now(UTC))
        with (
            sync_channel(Address.of_machine(MachineIdentity.load(tmp_path / "pi"))) as machine,
            Client(server.tls_address()) as operator,
        ):
            said = threading.Event()

            def requests() -> Iterator[edge_pb2.ConnectRequest]:
                yield edge_pb2.ConnectRequest(hello=edge_pb2.Hello(device_id="pi-7", session_id="s"))
                observation = edge_pb2.Observation(observation_id=str(uuid.uuid4()), text=UNCLEAR)
                yield edge_pb2.ConnectRequest(sequence=1, observation=observation)
                said.wait(30)

            stream = edge_pb2_grpc.EdgeServiceStub(machine).Connect(requests(), timeout=60)
            task_id = next(
                response.observation_outcome.task_id
                for response in stream
                if response.HasField("observation_outcome")
            )
            tasks = task_pb2_grpc.TaskServiceStub(machine)
            seen = tasks.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=10).task
            assert (seen.caller, seen.device_id) == ("device/pi-7", "pi-7")
            other = operator.submit(UNCLEAR).task_id
            with pytest.raises(grpc.RpcError) as refused:
                tasks.GetTask(task_pb2.GetTaskRequest(task_id=other), timeout=10)
            assert isinstance(from_rpc_error(refused.value), NotFound)

            revoke = identity_pb2.RevokeIdentityRequest(kind=kind, name="pi-7", reason="stolen")
            began_s = time.monotonic()
            assert identities.RevokeIdentity(revoke, timeout=10).ended_calls == 1
            with pytest.raises(grpc.RpcError) as ended:
                list(stream)
            said.set()
            assert time.monotonic() - began_s < NOTICED_WITHIN.total_seconds()
            assert isinstance(from_rpc_error(ended.value), Unauthenticated)
            with pytest.raises(grpc.RpcError) as after:
                tasks.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=10)
            assert isinstance(from_rpc_error(after.value), Unauthenticated)


# How much one caller may have.


def test_quotas_are_one_callers_each_and_named(tmp_path: Path) -> None:
    quotas = {"caller_open_tasks": 3, "caller_submits_per_minute": 6, "caller_streams": 2}
    with (
        serving(tmp_path / "data", insecure_loopback=False, **quotas) as server,
        caller(server, "ann") as ann,
        caller(server, "bob") as bob,
    ):
        request_id = str(uuid.uuid4())
        tasks = [ann.submit(UNCLEAR, request_id=request_id).task_id]
        tasks += [ann.submit(UNCLEAR).task_id for _ in range(2)]
        code, message = _refusal(ann.submit, UNCLEAR)
        assert code == "LIMIT_EXCEEDED"
        assert "caller_open_tasks" in message
        # What was taken is found again also then, and others are not concerned.
        assert ann.submit(UNCLEAR, request_id=request_id).task_id == tasks[0]
        bob.submit(UNCLEAR)
        ann.cancel(tasks[2])
        ann.submit(RELAY)
        # That were six.
        with pytest.raises(LimitExceeded, match="caller_submits_per_minute") as caught:
            ann.submit(RELAY)
        assert caught.value.retry_after is not None
        assert timedelta(0) < caught.value.retry_after <= timedelta(seconds=10)
        cause = caught.value.__cause__
        details = [detail.TypeName() for detail in rpc_status.from_call(cause).details]  # type: ignore[arg-type]
        assert error_details_pb2.RetryInfo.DESCRIPTOR.full_name in details

        watching = [Watching(ann, task_id) for task_id in tasks[:2]]
        with pytest.raises(LimitExceeded, match="caller_streams"):
            list(ann.watch(tasks[0]))
        assert next(iter(bob.watch(bob.list().tasks[0].task_id)))
        for task_id in tasks[:2]:
            ann.cancel(task_id)
        for one in watching:
            one.end_s()
        assert len(list(ann.watch(tasks[0]))) > 1


def test_a_caller_with_many_tasks_does_not_keep_another_waiting(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "data", insecure_loopback=False, tasks_per_worker=2) as server,
        caller(server, "ann") as ann,
        caller(server, "bob") as bob,
        Client(server.tls_address()) as operator,
    ):
        many = [ann.submit(RELAY).task_id for _ in range(40)]
        one = bob.submit(RELAY).task_id
        assert bob.wait(one).status == status_pb2.TASK_STATUS_SUCCEEDED
        waiting = operator.list(statuses=[status_pb2.TASK_STATUS_ACCEPTED], page_size=100).tasks
        # His one task was done while most of hers still waited; in order of age he would have been the last.
        assert len(waiting) > 20
        for task_id in many:
            ann.cancel(task_id)

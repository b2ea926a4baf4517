"""The error tree is closed, and every error survives the wire as itself."""

import importlib
import pkgutil
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf import duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from podium import errors
from podium.errors import InvalidRequest, PodiumError, catalogue
from podium.rpc_status import MAX_STATUS_BYTES, from_rpc_error, to_status


def _modules() -> Iterator[str]:
    for package in ("agents", "cloud", "conductor", "edge", "podium", "tools"):
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, f"{package}."):
            if not found.name.endswith("_pb2_grpc") and not found.name.startswith("agents.packs.invoice.samples"):
                yield found.name


class SentError(grpc.RpcError, grpc.Call):
    """What a client sees of a status: code, details and trailers."""

    def __init__(self, status: status_pb2.Status) -> None:
        self._status = status

    def code(self):
        return next(code for code in grpc.StatusCode if code.value[0] == self._status.code)

    def details(self):
        return self._status.message

    def trailing_metadata(self):
        return (("grpc-status-details-bin", self._status.SerializeToString()),)

    def initial_metadata(self):
        return ()

    def is_active(self):
        return False

    def time_remaining(self):
        return None

    def cancel(self):
        return False

    def add_callback(self, callback):
        return False


def test_every_error_has_its_own_code_a_status_and_advice():
    for name in _modules():
        importlib.import_module(name)
    found = catalogue()
    assert len(found) > 25
    for code, kind in found.items():
        assert code == code.upper(), kind
        assert isinstance(kind.status, grpc.StatusCode), kind
        assert kind.status is not grpc.StatusCode.OK, kind
        assert kind.advice, kind
        assert kind.__doc__, kind


@pytest.mark.parametrize(
    "kind", sorted(catalogue().values(), key=lambda kind: kind.code), ids=lambda kind: kind.code
)
def test_an_error_survives_the_wire(kind):
    sent = kind.__new__(kind)
    PodiumError.__init__(sent, "das Gerät 失败 🚫", evidence=["a", "b"], agent="coder", field="text")
    received = from_rpc_error(SentError(to_status(sent)))
    assert type(received) is kind
    assert received.message == sent.message
    assert received.next_step == sent.next_step
    assert received.evidence == ("a", "b")
    assert received.agent == "coder"
    assert received.field == "text"


def _unheard_of(code: str) -> SentError:
    sent = InvalidRequest("no")
    sent.code = code
    return SentError(to_status(sent))


@pytest.mark.parametrize(
    ("sent", "keep_code", "received"),
    [
        ("ONLY_THE_CLOUD_HAS_IT", True, "ONLY_THE_CLOUD_HAS_IT"),
        ("ONLY_THE_CLOUD_HAS_IT", False, "INVALID_REQUEST"),
        ("\x1b[2Jnot a code", True, "INVALID_REQUEST"),
    ],
)
def test_a_code_without_a_class_here_is_kept_for_who_trusts_the_server(sent, keep_code, received):
    error = from_rpc_error(_unheard_of(sent), keep_code=keep_code)
    assert type(error) is InvalidRequest
    assert error.code == received
    assert InvalidRequest.code == "INVALID_REQUEST"


def test_a_status_stays_under_the_cap_however_long_the_error():
    error = InvalidRequest("錯" * 20_000, evidence=["證" * 5000] * 100, next_step="做" * 9000, field="f" * 3000)
    status = to_status(error)
    assert status.ByteSize() <= MAX_STATUS_BYTES
    assert isinstance(from_rpc_error(SentError(status)), InvalidRequest)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.UNAVAILABLE, "SERVER_UNAVAILABLE"),
        (grpc.StatusCode.CANCELLED, "SERVER_UNAVAILABLE"),
        (grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
        (grpc.StatusCode.OUT_OF_RANGE, "INVALID_REQUEST"),
        (grpc.StatusCode.ALREADY_EXISTS, "CONFLICT"),
        (grpc.StatusCode.ABORTED, "VERSION_CONFLICT"),
        (grpc.StatusCode.DATA_LOSS, "DATA_CORRUPT"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "TIME_LIMIT_EXCEEDED"),
        (grpc.StatusCode.UNKNOWN, "INTERNAL_ERROR"),
    ],
)
def test_a_status_from_elsewhere_becomes_the_nearest_error(code, expected):
    assert from_rpc_error(SentError(status_pb2.Status(code=code.value[0], message="x"))).code == expected


def _details(*details: Message) -> bytes:
    status = to_status(InvalidRequest("no such field"))
    for detail in details:
        status.details.add().Pack(detail)
    return status.SerializeToString()


def _broken_info() -> bytes:
    status = to_status(InvalidRequest("no such field"))
    status.details[0].value = b"\xff\xff\xff"
    return status.SerializeToString()


@pytest.mark.parametrize(
    "trailer",
    [
        pytest.param(b"\xff\xff\xff", id="no status"),
        pytest.param(_broken_info(), id="a broken detail"),
        pytest.param(
            _details(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=2**62))),
            id="a time beyond all bounds",
        ),
        pytest.param(to_status(InvalidRequest("another message")).SerializeToString(), id="another message"),
    ],
)
def test_details_that_a_server_broke_leave_its_status(trailer):
    error = grpc.aio.AioRpcError(
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.aio.Metadata(),
        grpc.aio.Metadata(("grpc-status-details-bin", trailer)),
        details="no such field",
    )
    restored = from_rpc_error(error)
    assert type(restored) is InvalidRequest
    assert restored.message == "no such field"


def test_what_an_error_quotes_commands_no_terminal():
    evil = "a\x1b]0;owned\x07\x9b2J\u202eb\ud800\nc\td"
    error = errors.AgentCrashed(evil, next_step=evil, evidence=[evil])
    assert error.message == "a\ufffd]0;owned\ufffd\ufffd2J\ufffdb?\nc\td"
    assert (error.next_step, error.evidence) == (error.message, (error.message,))


def test_two_classes_with_one_code_are_noticed(monkeypatch):
    class Doubled(errors.NotFound):
        """Has its parent's code."""

    with pytest.raises(ValueError, match="share the code NOT_FOUND"):
        catalogue()
    # A class lives as long as something refers to it; give this one a code of its own again.
    Doubled.code = "DOUBLED_FOR_A_TEST"

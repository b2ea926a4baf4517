"""Every method in every role, from the one table, against a real server; and whoever has no role at all."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from joserfc import jwt
from joserfc.jwk import ECKey

from cloud.auth.roles import MAY_CALL, OPEN, PERSON_ROLES, SERVED_ELSEWHERE
from podium.client import Client
from podium.errors import PodiumError, Unauthenticated
from podium.identity.enrolling import KINDS, enroll
from podium.link import Address, MachineIdentity, sync_channel
from podium.rpc_status import from_rpc_error
from podium.v1 import identity_pb2, identity_pb2_grpc
from tests.integration.server import Running, serving

_MODULES = ("agent", "blob", "edge", "identity", "registry", "review", "task")


def _methods() -> Iterator[MethodDescriptor]:
    for name in _MODULES:
        for service in import_module(f"podium.v1.{name}_pb2").DESCRIPTOR.services_by_name.values():
            if service.full_name not in SERVED_ELSEWHERE:
                yield from service.methods


METHODS = {f"/{method.containing_service.full_name}/{method.name}": method for method in _methods()}


def _encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Callers:
    """A server and everybody who may call it, or may not."""

    server: Running
    folder: Path

    def key(self) -> ECKey:
        return ECKey.import_key((self.server.data / "tokens.key").read_bytes())

    def token(self, role: str) -> str:
        with Client(self.server.tls_address()) as client:
            return client.issue_token(f"some-{role}", [role]).token

    def machine(self, kind: str) -> Address:
        folder = self.folder / kind
        if not folder.exists():
            with sync_channel(self.server.tls_address()) as channel:
                request = identity_pb2.CreateEnrolmentTokenRequest(kind=KINDS[kind], name=f"some-{kind}")
                stub = identity_pb2_grpc.IdentityServiceStub(channel)
                token = stub.CreateEnrolmentToken(request, timeout=10).token
            name, clock = f"some-{kind}", lambda: datetime.now(UTC)
            enroll(self.server.address, token, folder, kind=kind, name=name, clock=clock)
        return Address.of_machine(MachineIdentity.load(folder))

    def forged(self, **changes: Any) -> str:
        """A token signed with the server's own key, with other claims."""
        now = time.time()
        claims = {"iss": "podium", "aud": "podium", "sub": "mallory", "roles": ["administrator"]}
        claims |= {"iat": now, "exp": now + 600, "jti": "x", "epoch": ""} | changes
        return jwt.encode({"alg": "ES256"}, claims, self.key(), algorithms=["ES256"])

    def unsigned(self) -> str:
        _, claims, _ = self.forged().split(".")
        return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{claims}."

    def signed_with_the_public_key(self) -> str:
        """HS256 with the public key as its password, which everybody has."""
        _, claims, _ = self.forged().split(".")
        signed = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{claims}"
        public = self.key().as_pem(private=False)
        return f"{signed}.{_encoded(hmac.digest(public, signed.encode(), hashlib.sha256))}"

    def of_a_strangers_key(self) -> str:
        header, claims = (
            {"alg": "ES256"},
            {"iss": "podium", "aud": "podium", "sub": "m", "roles": ["administrator"]},
        )
        claims |= {"iat": time.time(), "exp": time.time() + 600}  # type: ignore[dict-item]
        return jwt.encode(header, claims, ECKey.generate_key("P-256"), algorithms=["ES256"])

    def taken_back(self) -> str:
        with Client(self.server.tls_address()) as client:
            token = client.issue_token("gone", ["administrator"]).token
            client.revoke_tokens("gone")
        return token


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    folder = tmp_path_factory.mktemp("roles")
    with serving(folder / "data", insecure_loopback=False) as server:
        found = Callers(server, folder)
        # Before other tests: an address from which many attempts to enrol were refused has to wait.
        for kind in KINDS:
            found.machine(kind)
        yield found


def _called(channel: grpc.Channel, name: str, *, data: bytes = b"") -> PodiumError | None:
    """What a method says to a request; None when it serves it. Bytes, so that nothing here is checked."""
    method = METHODS[name]
    raw: dict[str, Any] = {"request_serializer": None, "response_deserializer": None}
    try:
        if method.client_streaming:
            kind = channel.stream_stream if method.server_streaming else channel.stream_unary
            answer = kind(name, **raw)(iter([data]), timeout=10)
        else:
            unary = channel.unary_stream if method.server_streaming else channel.unary_unary
            answer = unary(name, **raw)(data, timeout=10)
        if method.server_streaming:
            next(answer, None)
            answer.cancel()
    except grpc.RpcError as error:
        return from_rpc_error(error)
    return None


def test_the_table_has_every_method_and_no_other() -> None:
    assert set(MAY_CALL) | OPEN == set(METHODS)
    assert not set(MAY_CALL) & OPEN
    folder = Path(import_module("podium.v1").__path__[0])
    assert {path.name for path in folder.glob("*_pb2_grpc.py") if "Servicer" in path.read_text()} == {
        f"{name}_pb2_grpc.py" for name in _MODULES
    }


def test_some_lines_of_the_table_stay() -> None:
    """Read as sentences, so that a slip in the table is not its own proof."""

    def may(role: str) -> set[str]:
        return {name.rpartition("/")[2] for name, roles in MAY_CALL.items() if role in roles}

    assert may("device") == {"Connect", "GetTask", "WatchTask", "Stat", "Upload"}
    assert may("site") == {"Stat", "Upload"}
    assert may("agent_host") == {"ListAgents", "GetAgent"}
    know = {"ListAgents", "GetAgent", "GetPlanner"}
    assert may("reviewer") == {"ListReviews", "ResolveReview", "Stat", "Download"} | know
    changes = ("SubmitTask", "CancelTask", "ProvideInput", "Upload", "ResolveReview", "RegisterAgent")
    assert not may("viewer") & {*changes, "CollectGarbage", "RevokeIdentity", "IssueCallerToken", "Connect"}
    assert not may("caller") & {"ResolveReview", "RegisterAgent", "RevokeIdentity", "IssueCallerToken", "Connect"}
    assert may("administrator") - may("operator") == {"IssueCallerToken", "RevokeCallerTokens", "Connect"}
    assert may("administrator") == {name.rpartition("/")[2] for name in MAY_CALL}


@pytest.mark.parametrize("role", sorted(PERSON_ROLES))
def test_a_role_may_what_the_table_says(callers: Callers, role: str) -> None:
    with sync_channel(callers.server.tls_address(callers.token(role))) as channel:
        _holds(channel, role)


@pytest.mark.parametrize("kind", ["device", "site", "agent_host", "worker"])
def test_a_machine_may_what_the_table_says_of_its_kind(callers: Callers, kind: str) -> None:
    with sync_channel(callers.machine(kind)) as channel:
        _holds(channel, kind)


def _holds(channel: grpc.Channel, role: str) -> None:
    told = {name: _called(channel, name) for name in METHODS}
    codes = {name: error.code if error is not None else "OK" for name, error in told.items()}
    refused = {name for name, code in codes.items() if code == "PERMISSION_DENIED"}
    assert refused == {name for name, roles in MAY_CALL.items() if role not in roles}, codes
    assert "UNAUTHENTICATED" not in codes.values()


STRANGERS: dict[str, Callable[[Callers], str]] = {
    "nothing": lambda _: "",
    "no token": lambda _: "let-me-in",
    "expired": lambda callers: callers.forged(iat=time.time() - 900, exp=time.time() - 300),
    "taken back": Callers.taken_back,
    "for another server": lambda callers: callers.forged(aud="somebody-else"),
    "of another issuer": lambda callers: callers.forged(iss="https://elsewhere.example"),
    "of the future": lambda callers: callers.forged(iat=time.time() + 600, exp=time.time() + 900),
    "without end": lambda callers: callers.forged(exp=None),
    "endless": lambda callers: callers.forged(exp=float("1e300")),
    "true as end": lambda callers: callers.forged(exp=True),
    "a machine's name": lambda callers: callers.forged(sub="device/some-device"),
    "no signature": Callers.unsigned,
    "HS256": Callers.signed_with_the_public_key,
    "a stranger's key": Callers.of_a_strangers_key,
    "cut": lambda callers: callers.forged()[:-10],
    "long": lambda _: "x" * 7000,
}


@pytest.mark.parametrize("who", STRANGERS)
def test_who_is_not_known_may_nothing(callers: Callers, who: str) -> None:
    with sync_channel(callers.server.tls_address(STRANGERS[who](callers))) as channel:
        for name in MAY_CALL:
            error = _called(channel, name, data=b"\xff\xff no message")
            assert error is not None
            assert error.code == "UNAUTHENTICATED", name  # before anything was decoded
            assert isinstance(error, Unauthenticated)


def test_roles_of_machines_are_not_given_by_tokens(callers: Callers) -> None:
    token = callers.forged(roles=["device", "site", "agent_host", "root"])
    with sync_channel(callers.server.tls_address(token)) as channel:
        for name in MAY_CALL:
            error = _called(channel, name)
            assert error is not None
            assert error.code == "PERMISSION_DENIED"


def test_a_machine_is_what_its_certificate_says_whatever_token_it_sends(callers: Callers) -> None:
    device = callers.machine("device")
    operator = callers.server.tls_address().token
    with sync_channel(device) as channel:
        call = channel.unary_unary("/podium.v1.TaskService/ListTasks")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", timeout=10, metadata=[("authorization", f"Bearer {operator}")])
    assert from_rpc_error(caught.value).code == "PERMISSION_DENIED"


def test_two_authorizations_are_none(callers: Callers) -> None:
    operator = callers.server.tls_address().token
    with sync_channel(callers.server.tls_address("")) as channel:
        call = channel.unary_unary("/podium.v1.TaskService/ListTasks")
        one = ("authorization", f"Bearer {operator}")
        call(b"", timeout=10, metadata=[one])
        for metadata in ([one, one], [("authorization", f"Basic {operator}")], [("authorization", "Bearer ")]):
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=10, metadata=metadata)
            assert from_rpc_error(caught.value).code == "UNAUTHENTICATED"


def test_health_and_what_carries_its_own_proof_are_open(callers: Callers) -> None:
    with sync_channel(callers.server.tls_address("")) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        serving_now = health.Check(health_pb2.HealthCheckRequest(service="podium.v1.TaskService"), timeout=10)
        assert serving_now.status == health_pb2.HealthCheckResponse.SERVING
        for name in OPEN:
            error = _called(channel, name)
            assert error is not None
            assert error.code not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "INTERNAL_ERROR"), name


def test_a_device_connects_under_its_own_name_only(callers: Callers) -> None:
    request = GetMessageClass(METHODS["/podium.v1.EdgeService/Connect"].input_type)
    with sync_channel(callers.machine("device")) as channel:
        stolen = request(hello={"device_id": "another"}).SerializeToString()
        error = _called(channel, "/podium.v1.EdgeService/Connect", data=stolen)
        assert error is not None
        assert error.code == "PERMISSION_DENIED"
        own = request(hello={"device_id": "some-device"}).SerializeToString()
        assert _called(channel, "/podium.v1.EdgeService/Connect", data=own) is None


def test_without_tls_and_credentials_everybody_here_is_the_local_administrator(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
        assert client.submit("relay the words please").caller == "local"
        assert not server.token_file.exists()
        assert client.issue_token("ann", ["viewer"], lifetime=timedelta(minutes=1)).token

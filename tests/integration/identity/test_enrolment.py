"""From a token to a certificate that opens the port for machines, over real TLS."""

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from podium.client.machines import MachinesClient
from podium.errors import InvalidRequest, PermissionDenied, PodiumError, ServerUnavailable, Unauthenticated
from podium.identity.enrolling import enroll, renew
from podium.identity.token import EnrolmentToken
from podium.link import Address, MachineIdentity, sync_channel
from podium.link.certificates import (
    CertificateRefused,
    CertificateUnknown,
    EnrolmentNotCovered,
    EnrolmentTokenExpired,
    EnrolmentTokenInvalid,
    EnrolmentTokenUsed,
    IdentityNameTaken,
    MachinesNotServed,
    ServerNotTrusted,
)
from podium.rpc_status import from_rpc_error
from podium.v1 import identity_pb2, identity_pb2_grpc, task_pb2, task_pb2_grpc
from tests.integration.identity.ground import DEVICE, SITE, Stream, enrolled, now, operator, tls_serving, token
from tests.integration.server import Running
from tools.ledger.reading import entries


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with tls_serving(tmp_path_factory.mktemp("data")) as running:
        yield running


def test_an_enrolled_device_connects_under_its_own_name_only(hub: Running, tmp_path: Path) -> None:
    got = enrolled(hub, tmp_path, "pi-1")
    assert got.server == hub.app.machines_address != hub.address
    with Stream.of(tmp_path) as stream:
        assert stream.welcome().time.seconds
    with Stream.of(tmp_path, device_id="pi-2") as stream, pytest.raises(PermissionDenied):
        stream.welcome()
    with operator(hub) as client:
        (machine,) = [item for item in client.machines() if item.name == "pi-1"]
    assert machine.serial == got.serial
    assert machine.HasField("last_seen_time")
    bodies = [entry.body for entry in entries(hub.data / "audit") if entry.body is not None]
    recorded = [body for body in bodies if body.get("action") == "identity.enrolled"]
    assert recorded[0]["details"]["name"] == "pi-1"


def test_the_port_for_machines_takes_nobody_without_a_certificate(hub: Running) -> None:
    address = Address.of_authority(hub.app.machines_address, (hub.data / "tls/ca.pem").read_bytes())
    with sync_channel(address) as channel, pytest.raises(grpc.RpcError) as raised:
        task_pb2_grpc.TaskServiceStub(channel).ListTasks(task_pb2.ListTasksRequest(), timeout=10)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_certificate_is_no_token_for_callers_and_devices_call_nothing_else(hub: Running, tmp_path: Path) -> None:
    enrolled(hub, tmp_path, "pi-calls")
    identity = MachineIdentity.load(tmp_path)
    for target, expected in ((hub.address, Unauthenticated), ("", PermissionDenied)):
        with sync_channel(Address.of_machine(identity, target)) as channel:
            with pytest.raises(grpc.RpcError) as raised:
                task_pb2_grpc.TaskServiceStub(channel).ListTasks(task_pb2.ListTasksRequest(), timeout=10)
            assert isinstance(from_rpc_error(raised.value), expected)


def test_tokens_that_do_not_fit_are_refused_with_their_reason(hub: Running, tmp_path: Path) -> None:
    with operator(hub) as client:
        short = client.invite(DEVICE, name="pi-short", lifetime=timedelta(milliseconds=1)).token
    used = token(hub, "pi-used")
    enroll(hub.address, used, tmp_path / "used", kind="device", clock=now)
    good = token(hub, "pi-good")
    for text, name, kind, expected in (
        (short, "", "device", EnrolmentTokenExpired),
        (used, "", "device", EnrolmentTokenUsed),
        (good, "other", "device", EnrolmentNotCovered),
        (good, "", "site", EnrolmentNotCovered),
        (token(hub), "pi-used", "device", IdentityNameTaken),
        (token(hub), "../etc", "device", InvalidRequest),
        (EnrolmentToken.make(EnrolmentToken.parse(good).ca_der).text, "", "device", EnrolmentTokenInvalid),
    ):
        with pytest.raises(expected) as raised:
            enroll(hub.address, text, tmp_path / "new", kind=kind, name=name, clock=now)
        assert raised.value.next_step
        assert not (tmp_path / "new" / "identity.json").exists()
    enroll(hub.address, good, tmp_path / "new", kind="device", clock=now)


def test_a_token_of_another_server_is_not_sent_to_this_one(hub: Running, tmp_path: Path) -> None:
    with tls_serving(tmp_path / "other") as other:
        text = token(other, "pi-1")
        for _ in range(2):
            with pytest.raises(ServerNotTrusted, match="not vouched for"):
                enroll(hub.address, text, tmp_path / "pi", kind="device", clock=now)
        assert enroll(other.address, text, tmp_path / "pi", kind="device", clock=now).name == "pi-1"


def test_a_machine_of_another_authority_is_refused_and_told_why(hub: Running, tmp_path: Path) -> None:
    """Server side of a wrong authority: TLS only hangs up, the port for callers says the reason."""
    with tls_serving(tmp_path / "other") as other:
        enrolled(other, tmp_path / "pi", "stranger")
    _moved(tmp_path / "pi", hub)
    with Stream.of(tmp_path / "pi", device_id="stranger") as stream, pytest.raises(CertificateRefused):
        stream.welcome()
    with pytest.raises(CertificateUnknown, match="did not issue"):
        renew(tmp_path / "pi", clock=now)


def _moved(folder: Path, server: Running) -> None:
    """As if the identity were of this server: its addresses and its authority."""
    place = (folder / "current").resolve()
    about = json.loads((place / "identity.json").read_text())
    about |= {"server": server.app.machines_address, "renewal_server": server.address}
    (place / "identity.json").write_text(json.dumps(about))
    shutil.copy(server.data / "tls" / "ca.pem", place / "ca.pem")


def test_who_tries_too_often_must_wait(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data") as server:
        ca_pem = (server.data / "tls/ca.pem").read_bytes()
        enrolled(server, tmp_path / "pi-1")
        codes = []
        with sync_channel(Address.of_authority(server.address, ca_pem)) as channel:
            stub = identity_pb2_grpc.IdentityServiceStub(channel)
            for _ in range(15):
                with pytest.raises(grpc.RpcError) as raised:
                    stub.Enroll(identity_pb2.EnrollRequest(token="x", csr_pem=b"x"), timeout=10)
                codes.append(from_rpc_error(raised.value).code)
        assert codes == ["ENROLMENT_TOKEN_INVALID"] * 10 + ["TOO_MANY_ATTEMPTS"] * 5
        # Others behind the same address come in, and renew.
        assert enrolled(server, tmp_path / "pi-2", "pi-2").name == "pi-2"
        assert renew(tmp_path / "pi-1", clock=now).name == "pi-1"


def test_a_token_that_is_on_record_has_tries_of_its_own(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data") as server:
        used = token(server, "pi-1")
        enroll(server.address, used, tmp_path / "pi", kind="device", clock=now)
        codes = []
        for number in range(12):
            with pytest.raises(PodiumError) as raised:
                enroll(server.address, used, tmp_path / f"other-{number}", kind="device", clock=now)
            codes.append(raised.value.code)
        assert codes == ["ENROLMENT_TOKEN_USED"] * 10 + ["TOO_MANY_ATTEMPTS"] * 2
        assert enrolled(server, tmp_path / "pi-2", "pi-2").name == "pi-2"


def test_a_server_that_takes_no_machines_says_so_and_keeps_the_token(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with tls_serving(data, listen_machines="off") as server:
        assert server.app.machines_address == ""
        text = token(server, "pi-1")
        with pytest.raises(MachinesNotServed):
            enroll(server.address, text, tmp_path / "pi", kind="device", clock=now)
    with tls_serving(data) as server:
        assert enroll(server.address, text, tmp_path / "pi", kind="device", clock=now).name == "pi-1"


def test_an_operators_own_certificate_at_the_front(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "authority"):
        pass
    tls = tmp_path / "authority" / "tls"
    front = {"tls_certificate": tls / "server.pem", "tls_key": tls / "server.key"}
    with tls_serving(tmp_path / "data", **front, tls_ca=tls / "ca.pem") as server:
        got = enrolled_at(server, tls / "ca.pem", tmp_path / "pi", ca_pem=b"")
        with Stream.of(tmp_path / "pi", device_id=got) as stream:
            stream.welcome()
        renew(tmp_path / "pi", clock=now)
    with tls_serving(tmp_path / "data2", **front) as server:
        with pytest.raises(InvalidRequest) as raised:
            enrolled_at(server, tls / "ca.pem", tmp_path / "pi2", ca_pem=b"")
        assert raised.value.field == "ca"
        enrolled_at(server, tls / "ca.pem", tmp_path / "pi2", ca_pem=(tls / "ca.pem").read_bytes())
        with Stream.of(tmp_path / "pi2") as stream:
            stream.welcome()


def enrolled_at(server: Running, ca: Path, folder: Path, *, ca_pem: bytes) -> str:
    address = Address.of(server.address, ca, token=server.token_file.read_text().strip())
    with MachinesClient(address) as client:
        text = client.invite(DEVICE, name="pi-1").token
    return enroll(server.address, text, folder, kind="device", ca_pem=ca_pem, clock=now).name


def test_a_site_is_no_device(hub: Running, tmp_path: Path) -> None:
    text = token(hub, "north", kind=SITE)
    got = enroll(hub.address, text, tmp_path, kind="site", clock=now)
    assert got.kind == "site"
    with Stream.of(tmp_path, device_id="north") as stream, pytest.raises(PermissionDenied):
        stream.welcome()


def test_a_server_that_is_away_is_told_and_the_key_is_kept(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data") as server:
        text = token(server, "pi-1")
    with pytest.raises(ServerUnavailable, match="nothing listens"):
        enroll(server.address, text, tmp_path / "pi", kind="device", clock=now)
    assert (tmp_path / "pi" / "next-key.pem").exists()

"""Enrolment and renewal at a server whose answers are not for this machine: nothing is installed, nothing lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization

from cloud.identity.authority import Authority
from cloud.identity.requests import public_key_of
from cloud.tls import local_identity
from podium.errors import DataCorrupt
from podium.identity.enrolling import enroll, renew
from podium.identity.keys import make_key
from podium.identity.token import EnrolmentToken
from podium.link import MachineIdentity
from podium.v1 import identity_pb2, identity_pb2_grpc
from tests.integration.identity.ground import DEVICE, now

Answer = identity_pb2.EnrollResponse | identity_pb2.RenewResponse
Spoil = Callable[[Answer, "WrongServer"], None]


class WrongServer(identity_pb2_grpc.IdentityServiceServicer):
    """Certifies as it should, and then spoils the answer."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.load_or_make(folder / "tls", now())
        self.other = Authority.load_or_make(folder / "other", now())
        self.spoil: Spoil = right
        self.folder = folder

    def Enroll(self, request: identity_pb2.EnrollRequest, context: Any) -> Answer:  # noqa: N802 - gRPC's name
        return self._answer(identity_pb2.EnrollResponse(), request.csr_pem)

    def Renew(self, request: identity_pb2.RenewRequest, context: Any) -> Answer:  # noqa: N802 - gRPC's name
        return self._answer(identity_pb2.RenewResponse(), request.csr_pem)

    def certify(self, answer: Answer, key: Any, *, by: Authority | None = None, name: str = "pi-1") -> None:
        """Put a certificate in the answer."""
        signed = (by or self.authority).machine_certificate(
            "device", name, key, now=now(), lifetime=timedelta(days=90)
        )
        answer.certificate_pem = signed.public_bytes(serialization.Encoding.PEM)
        answer.ca_pem = self.authority.pem
        identity = identity_pb2.Identity(kind=DEVICE, name="pi-1", serial=format(signed.serial_number, "x"))
        identity.issue_time.FromDatetime(now())
        identity.expire_time.FromDatetime(now() + timedelta(days=90))
        answer.identity.CopyFrom(identity)

    def _answer(self, answer: Answer, csr_pem: bytes) -> Answer:
        self.key = public_key_of(csr_pem)
        self.certify(answer, self.key)
        answer.machines_address = "127.0.0.1:1"
        self.spoil(answer, self)
        return answer


def right(answer: Answer, server: WrongServer) -> None:
    """Not spoilt at all."""


def another_key(answer: Answer, server: WrongServer) -> None:
    server.certify(answer, make_key().public_key())


def another_name(answer: Answer, server: WrongServer) -> None:
    server.certify(answer, server.key, name="pi-2")


def another_authority(answer: Answer, server: WrongServer) -> None:
    server.certify(answer, server.key, by=server.other)


def another_serial(answer: Answer, server: WrongServer) -> None:
    answer.identity.serial = "abc"


def no_certificate(answer: Answer, server: WrongServer) -> None:
    answer.certificate_pem = b"soon"


def no_moment(answer: Answer, server: WrongServer) -> None:
    answer.identity.expire_time.seconds = 2**62


def ends_before_it_begins(answer: Answer, server: WrongServer) -> None:
    answer.identity.expire_time.FromDatetime(now() - timedelta(days=1))


@contextmanager
def listening(server: WrongServer) -> Iterator[str]:
    shown = local_identity(server.authority, host_names=("127.0.0.1",), now=now())
    front = grpc.server(ThreadPoolExecutor(2))
    identity_pb2_grpc.add_IdentityServiceServicer_to_server(server, front)
    credentials = grpc.ssl_server_credentials([(shown.key_pem, shown.certificate_pem)])
    port = front.add_secure_port("127.0.0.1:0", credentials)
    front.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        front.stop(None).wait()


def test_what_is_not_for_this_machine_is_not_installed(tmp_path: Path) -> None:
    server, folder = WrongServer(tmp_path), tmp_path / "pi"
    spoils = (
        another_key,
        another_name,
        another_authority,
        another_serial,
        no_certificate,
        no_moment,
        ends_before_it_begins,
    )
    with listening(server) as address:

        def enrolled() -> None:
            text = EnrolmentToken.make(server.authority.der).text
            enroll(address, text, folder, kind="device", clock=now)

        for spoil in spoils:
            server.spoil = spoil
            with pytest.raises(DataCorrupt, match="not for this machine"):
                enrolled()
            assert not (folder / "identity.json").exists()
        server.spoil = right
        enrolled()
        before = MachineIdentity.load(folder)
        for spoil in spoils:
            server.spoil = spoil
            with pytest.raises(DataCorrupt, match="not for this machine"):
                renew(folder, clock=now)
            assert MachineIdentity.load(folder) == before
        server.spoil = right
        renew(folder, clock=now)
        assert MachineIdentity.load(folder) != before

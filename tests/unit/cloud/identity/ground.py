"""A desk on real SQLite and a real authority, with a clock that tests move."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from cloud.identity.authority import Authority
from cloud.identity.desk import IdentityDesk, IdentityRules, Issued
from cloud.identity.revocation import Revocations
from cloud.identity.store import IdentityStore
from podium.identity.keys import certificate_request, make_key, signature
from tests.fakes.audit import ListAuditLog
from tests.fakes.clock import FakeClock


@dataclass
class Machine:
    """A machine in a test: a key, and the certificate that it was given."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=make_key)
    certificate_pem: bytes = b""

    @property
    def csr(self) -> bytes:
        return certificate_request(self.key)

    @property
    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.certificate_pem).serial_number


class Ground:
    """The server's half, without a server."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.audit = ListAuditLog()
        self.store = IdentityStore(folder / "identity.sqlite")
        self.authority = Authority.load_or_make(folder / "tls", self.clock())
        self.revocations = Revocations(self.store, clock=self.clock)
        self.desk = IdentityDesk(
            self.store,
            self.authority,
            self.revocations,
            self.audit,
            clock=self.clock,
            rules=IdentityRules(lifetime=timedelta(days=90), grace=timedelta(days=90)),
        )

    def token(self, name: str = "", *, kind: str = "device", uses: int = 1) -> str:
        return self.desk.invite(kind, name=name, uses=uses, by="ann")[0].text

    def enrolled(self, name: str) -> Machine:
        machine = Machine()
        machine.certificate_pem = self.desk.enrol(self.token(name), machine.csr).certificate_pem
        return machine

    def renewed(self, machine: Machine, key: ec.EllipticCurvePrivateKey | None = None) -> Machine:
        """The machine with a new certificate, and a new key unless one is given."""
        fresh = Machine(key or make_key())
        issued = self.renew(machine, fresh)
        fresh.certificate_pem = issued.certificate_pem
        return fresh

    def renew(self, machine: Machine, fresh: Machine) -> Issued:
        csr = fresh.csr
        return self.desk.renew(machine.certificate_pem, csr, signature(machine.key, csr))

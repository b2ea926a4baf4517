"""Which machines' certificates are good at this moment: in memory, asked at every call.

TLS has checked by then that our authority signed the certificate and that its time is not over. What TLS does not
know is here: revoked, replaced by a newer one, or not on record.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from cloud.identity.records import CertificateState, IssuedCertificate
from cloud.identity.store import IdentityStore
from podium.errors import PodiumError
from podium.link.certificates import (
    CertificateExpired,
    CertificateRevoked,
    CertificateSuperseded,
    CertificateUnknown,
)

_LOG = logging.getLogger(__name__)

OVERLAP = timedelta(seconds=20)
"""How long calls with the old certificate are still served once the new one is in use: a machine's processes do
not all take up the new one in the same instant."""
_FLUSHED_EVERY = timedelta(minutes=1)

EndCalls = Callable[[str, str], int]
"""Given a machine's kind and name: ends its live calls and says how many there were."""


class Revocations:
    """The state of every certificate; `check` is what a call with one goes through."""

    def __init__(
        self, store: IdentityStore, *, clock: Callable[[], datetime], overlap: timedelta = OVERLAP
    ) -> None:
        """Load what is on record.

        Args:
            store: the record; what is first shown here is noted there.
            clock: the server's clock.
            overlap: see `OVERLAP`.
        """
        self._store = store
        self._clock = clock
        self._overlap = overlap
        self._lock = threading.Lock()
        self._known = {certificate.serial: certificate for certificate in store.certificates()}
        self._seen: dict[tuple[str, str], datetime] = {}
        self._end_calls: list[EndCalls] = []

    def on_revoked(self, end_calls: EndCalls) -> None:
        """Have this called, on the event loop, whenever a machine's certificates were taken back."""
        self._end_calls.append(end_calls)

    def tell(self, kind: str, name: str) -> int:
        """End the live calls of a machine whose certificates were taken back; how many there were."""
        return sum(end_calls(kind, name) for end_calls in self._end_calls)

    def state(self, serial: int) -> CertificateState | None:
        """Where a certificate stands; None when it is not on record."""
        known = self._known.get(serial)
        return known.state if known is not None else None

    def holds_good(self, kind: str, name: str) -> bool:
        """Whether a machine has a certificate that was not taken back."""
        return any(certificate.name == name for certificate in self.good(kind))

    def is_revoked(self, serial: int) -> bool:
        """Whether a certificate was taken back."""
        return self.state(serial) is CertificateState.REVOKED

    def check(self, serial: int) -> None:
        """Let a call pass that shows this certificate, or not; the first use of a new one ends those before it.

        Raises:
            CertificateUnknown, CertificateRevoked, CertificateSuperseded, CertificateExpired: it is not good.
            StorageFull, InternalError: its first use cannot be noted.
        """
        now = self._clock()
        known = self._known.get(serial)
        if known is None:
            raise CertificateUnknown("this server did not issue the certificate shown, or lost its records")
        who = f"{known.kind} {known.name}"
        if known.state is CertificateState.REVOKED:
            raise CertificateRevoked(f"the certificate of {who} was revoked at {_told(known.change_time)}")
        if known.state is CertificateState.SUPERSEDED:
            if not timedelta(0) <= now - known.change_time < self._overlap:
                raise CertificateSuperseded(
                    f"a newer certificate of {who} is in use since {_told(known.change_time)}"
                )
        elif now >= known.expire_time:  # of a connection that has outlived it
            raise CertificateExpired(
                f"the certificate of {who} expired at {_told(known.expire_time)}; it is {_told(now)} here"
            )
        if known.state is CertificateState.ISSUED and not self._first_use(known, now):
            self.check(serial)
            return
        self._note_seen(known, now)

    def good(self, kind: str) -> list[IssuedCertificate]:
        """Certificates of a kind of machine that were neither taken back nor long replaced."""
        now = self._clock()
        with self._lock:
            known = list(self._known.values())
        return [
            certificate
            for certificate in known
            if certificate.kind == kind
            and certificate.state is not CertificateState.REVOKED
            and (
                certificate.state is not CertificateState.SUPERSEDED
                or timedelta(0) <= now - certificate.change_time < self._overlap
            )
        ]

    def add(self, certificate: IssuedCertificate) -> None:
        """A certificate was issued."""
        with self._lock:
            self._known[certificate.serial] = certificate

    def put(self, certificates: list[IssuedCertificate]) -> None:
        """These stand otherwise now; they are on record so already."""
        with self._lock:
            self._known.update((certificate.serial, certificate) for certificate in certificates)

    def last_seen(self, kind: str, name: str) -> datetime | None:
        """When a machine was last seen, if that is not on record yet."""
        return self._seen.get((kind, name))

    def flush(self) -> None:
        """Put on record when machines were last seen.

        Raises:
            StorageFull, DatabaseCorrupt, InternalError: it cannot be written; it is tried again the next time.
        """
        with self._lock:
            seen = dict(self._seen)
        if not seen:
            return
        with self._store.transaction():
            for (kind, name), moment in seen.items():
                self._store.seen(kind, name, moment)
        with self._lock:
            for machine, moment in seen.items():
                if self._seen.get(machine) == moment:
                    del self._seen[machine]

    async def keep_flushed(self) -> None:
        """Flush every minute until cancelled, on a thread: a disk that is slow holds up no call."""
        while True:
            await asyncio.sleep(_FLUSHED_EVERY.total_seconds())
            try:
                await asyncio.to_thread(self.flush)
            except PodiumError as error:
                _LOG.error("when machines were last seen is not on record: %s", error.code)

    def _first_use(self, shown: IssuedCertificate, now: datetime) -> bool:
        """Everything else that this machine was given is over: it has shown that it holds the newest.

        Returns:
            False when the record says otherwise than memory did: somebody took it back just now.
        """
        with self._store.transaction():
            known = self._store.certificate(shown.serial)
            still_new = known is not None and known.state is CertificateState.ISSUED
            if still_new:
                others = [
                    other.serial
                    for other in self._store.certificates_of(shown.kind, shown.name)
                    if other.serial != shown.serial
                    and other.state in (CertificateState.ISSUED, CertificateState.CURRENT)
                ]
                self._store.set_states(others, CertificateState.SUPERSEDED, now)
                self._store.set_states([shown.serial], CertificateState.CURRENT, now)
            now_known = self._store.certificates_of(shown.kind, shown.name)
            never_given = known is None  # its record could not be written

            def remember() -> None:
                if never_given:
                    self._known.pop(shown.serial, None)
                self.put(now_known)

            # Memory changes in the order in which the record does, and never when the record does not.
            self._store.when_written(remember)
        return still_new

    def _note_seen(self, known: IssuedCertificate, now: datetime) -> None:
        with self._lock:
            self._seen[(known.kind, known.name)] = now


def _told(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"

"""When a machine's certificate is renewed, and by whom: a process of its own, so that this one stays small.

A running device must not load cryptography (35 MB), so `RenewalWatch` decides here, and
``python -m podium.identity.renewal DIR`` makes the key and the request, asks the server and changes the files.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from podium.errors import PodiumError
from podium.link.certificates import FINAL, RenewalFailed
from podium.link.machine import IDENTITY_FILE, IdentityUnusable, files_in_force, moment_in
from podium.rpc_status import error_of

RENEW_AFTER = 2 / 3
"""Share of its lifetime after which a certificate is renewed."""
JITTER = 1 / 20
"""At most this share of the lifetime later, so that machines enrolled together do not all come at once."""
_LOOK_AGAIN = timedelta(minutes=1)
_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)
_PROCESS_LIMIT = timedelta(seconds=60)
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """How long a certificate is good, by two clocks that may differ by years."""

    serial: str
    issued: datetime
    """By the server's clock."""
    expires: datetime
    """By the server's clock."""
    received: datetime
    """When this machine got it, by its own clock."""

    @classmethod
    def read(cls, folder: Path) -> "Validity":
        """From the files of an enrolled machine.

        Raises:
            IdentityUnusable: the file is missing or damaged.
        """
        path = files_in_force(folder) / IDENTITY_FILE
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                serial=str(about["serial"]),
                issued=moment_in(about, "issued"),
                expires=moment_in(about, "expires"),
                received=moment_in(about, "received"),
            )
        except OSError as error:
            raise IdentityUnusable(f"{path} cannot be read: {error.strerror}", field="identity") from error
        except (ValueError, KeyError, TypeError) as error:
            raise IdentityUnusable(f"{path} is damaged: {type(error).__name__}", field="identity") from error

    @property
    def lifetime(self) -> timedelta:
        """From issue to expiry."""
        return self.expires - self.issued

    def renewal_due_in(self, now: datetime, jitter: float) -> timedelta:
        """How long until it should be renewed; zero or less means now.

        Only time that passed on this machine's own clock counts, from when the certificate came, so a clock that
        is a year off but runs makes no difference. One that jumped makes for one renewal too many, after which
        both ends of the measure are on the new time: there is no loop.

        Args:
            now: this machine's clock.
            jitter: from 0 to 1, the same for one machine and certificate.
        """
        if now < self.received:
            return timedelta(0)  # the clock went back; how long it really was nobody knows
        return self.received + self.lifetime * (RENEW_AFTER + JITTER * jitter) - now


def clock_warning(ours: datetime, servers: datetime, *, tolerance: timedelta = _CLOCK_TOLERANCE) -> str:
    """Words about a clock that is off by more than five minutes, or ''.

    Args:
        ours: this machine's clock when the server's greeting came.
        servers: the server's clock, from `Welcome.time`.
        tolerance: another limit than five minutes.
    """
    off = ours - servers
    if abs(off) <= tolerance:
        return ""
    amount = (
        f"{abs(off) / timedelta(days=1):.0f} days"
        if abs(off) >= timedelta(days=2)
        else f"{abs(off).total_seconds() / 60:.0f} min"
    )
    return (
        f"this machine's clock is {amount} {'ahead of' if off > timedelta(0) else 'behind'} the server's "
        f"({ours:%Y-%m-%d %H:%M} against {servers:%Y-%m-%d %H:%M} UTC); set it, or have it set by NTP"
    )


async def renew_in_process(folder: Path) -> None:
    """Renew the certificate of a folder in a process of its own.

    Raises:
        PodiumError: why it could not be renewed, as its own class.
        RenewalFailed: the process cannot be started, takes too long or ends without a word.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            sys.executable, "-m", "podium.identity.renewal", str(folder), stdout=PIPE, stderr=PIPE
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        process = await starting  # so that none is left behind that nobody knows
        process.kill()
        await process.wait()
        raise
    except OSError as error:  # no memory for another process, or no more of them allowed
        raise RenewalFailed(f"the process that renews cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(_PROCESS_LIMIT.total_seconds()):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise RenewalFailed(f"renewal took longer than {_PROCESS_LIMIT.total_seconds():g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return
    try:
        told: dict[str, Any] = json.loads(out)["error"]
        failure = error_of(
            str(told["code"]),
            str(told["message"]),
            otherwise=RenewalFailed,
            next_step=str(told["next_step"]),
            evidence=tuple(map(str, told["evidence"])),
        )
    except (ValueError, KeyError, TypeError):
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise RenewalFailed(f"renewal ended with status {process.returncode}: {last[:200]}") from None
    raise failure


class RenewalWatch:
    """Renews a machine's certificate in time, for as long as `run` runs. Nothing it meets ends it."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        jitter: Callable[[], float],
        on_renewed: Callable[[], None],
        on_problem: Callable[[PodiumError], None],
        renew: Callable[[Path], Awaitable[None]] = renew_in_process,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Watch over one identity.

        Args:
            folder: the identity's files.
            clock: this machine's clock, in UTC.
            jitter: a random number from 0 to 1.
            on_renewed: the files are new: connect anew with them.
            on_problem: renewal did not succeed; it is tried again unless the error is one of
                `podium.link.certificates.FINAL`, after which only new files are looked for.
            renew: does the renewing; raises `PodiumError`.
            wait: sleeps for seconds; tests pass their own.
        """
        self._folder = folder
        self._clock = clock
        self._jitter = jitter
        self._on_renewed = on_renewed
        self._on_problem = on_problem
        self._renew = renew
        self._wait = wait
        self._hurried = asyncio.Event()
        self._hurried_at: datetime | None = None

    def hurry(self) -> None:
        """The server refused the certificate, or hung up on it: find out why by renewing it now.

        A refused TLS handshake looks to a client like a closed socket. The port that renewal uses asks for no
        certificate, so there the server can say what is wrong.
        """
        now = self._clock()
        # A server that hangs up on the new certificate too must not make us renew without end.
        if self._hurried_at is None or not timedelta(0) <= now - self._hurried_at < _LOOK_AGAIN:
            self._hurried_at = now
            self._hurried.set()

    async def run(self) -> None:
        """Renew whenever it is due, until cancelled."""
        spread = self._jitter()
        known = ""
        while True:
            try:
                validity = Validity.read(self._folder)
            except IdentityUnusable as error:
                self._on_problem(error)
                await self._wait(_LOOK_AGAIN.total_seconds())
                continue
            if known not in ("", validity.serial):  # whoever changed them: this watch, or a person
                self._on_renewed()
            known = validity.serial
            if await self._due(validity, spread):
                await self._renewed(validity)

    async def _due(self, validity: Validity, spread: float) -> bool:
        """Wait a little; whether to renew now. Short waits, because the clock may jump meanwhile."""
        left = validity.renewal_due_in(self._clock(), spread)
        if left <= timedelta(0):
            return True
        sleeping = asyncio.ensure_future(self._wait(min(left, _LOOK_AGAIN).total_seconds()))
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait({sleeping, hurried}, return_when=asyncio.FIRST_COMPLETED)
            return self._hurried.is_set()
        finally:
            sleeping.cancel()
            hurried.cancel()

    async def _renewed(self, validity: Validity) -> None:
        """Try until the files are new, by this process's doing or another's."""
        pause = _FIRST_PAUSE
        while self._serial() == validity.serial:
            try:
                await self._renew(self._folder)
            except PodiumError as error:
                self._on_problem(error)
                if isinstance(error, FINAL):  # only a person can help, by enrolling again
                    while self._serial() == validity.serial:
                        await self._wait(_LOOK_AGAIN.total_seconds())
                    break
                await self._wait(pause.total_seconds() * (0.5 + self._jitter() / 2))
                pause = min(pause * 2, _LONGEST_PAUSE)
        self._hurried.clear()

    def _serial(self) -> str:
        try:
            return Validity.read(self._folder).serial
        except IdentityUnusable:
            return ""

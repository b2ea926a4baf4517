"""The calls that are being served now, so that those of somebody who may no longer call can be ended."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from cloud.auth.principal import Principal
from cloud.auth.quotas import Quotas
from podium.errors import PodiumError, Unauthenticated
from podium.link.certificates import CertificateExpired

LOOK_EVERY = timedelta(seconds=2)
"""How late the end of credentials may be noticed on an open stream."""


@dataclass(slots=True, eq=False)
class LiveCall:
    """One call that is being served."""

    principal: Principal
    method: str
    task: "asyncio.Task[object]"
    ended_with: PodiumError | None = None
    """Why the server ended it, while it was being served; then its task is cancelled."""


class LiveCalls:
    """Belongs to the event loop that serves the calls."""

    def __init__(self, *, clock: Callable[[], datetime], quotas: Quotas) -> None:
        self._clock = clock
        self._quotas = quotas
        self._calls: set[LiveCall] = set()
        self._streams: Counter[str] = Counter()

    @contextmanager
    def serving(self, principal: Principal, method: str, *, streams: bool) -> Iterator[LiveCall]:
        """Keep a call on the list while its task is inside.

        Raises:
            LimitExceeded: it streams, and its caller has as many streams open as allowed.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is served by a task")
        if streams:
            self._quotas.check_streams(principal, self._streams[principal.caller])
            self._streams[principal.caller] += 1
        call = LiveCall(principal, method, task)
        self._calls.add(call)
        try:
            yield call
        finally:
            self._calls.discard(call)
            if streams:
                self._streams[principal.caller] -= 1
                if not self._streams[principal.caller]:
                    del self._streams[principal.caller]

    def end(self, kind: str, name: str, *, failure: PodiumError) -> int:
        """End every call of somebody, except the one this is called from; how many.

        Args:
            kind: device, site, worker or agent_host; "caller" for who calls with tokens.
            name: of the machine, or the caller's.
            failure: told to them.
        """
        caller = name if kind == "caller" else f"{kind}/{name}"
        return self._end(lambda principal: principal.caller == caller, lambda principal: failure)

    def end_expired(self) -> int:
        """End every call whose credentials have expired meanwhile; how many."""
        now = self._clock()
        return self._end(
            lambda principal: principal.expire_time is not None and principal.expire_time <= now,
            _expired,
        )

    async def end_expired_for_ever(self) -> None:
        """Look for expired credentials every few seconds until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            self.end_expired()

    def _end(self, concerns: Callable[[Principal], bool], failure: Callable[[Principal], PodiumError]) -> int:
        me = asyncio.current_task()
        ended = [
            call
            for call in self._calls
            if call.task is not me and call.ended_with is None and concerns(call.principal)
        ]
        for call in ended:
            call.ended_with = failure(call.principal)
            call.task.cancel()
        return len(ended)


def _expired(principal: Principal) -> PodiumError:
    if principal.kind == "machine":  # it renews by itself, and comes back
        return CertificateExpired(f"the certificate that {principal.caller} connected with has expired meanwhile")
    return Unauthenticated(
        "the token that the call began with has expired meanwhile",
        next_step="Ask the administrator for a new one: `podium token issue`.",
    )

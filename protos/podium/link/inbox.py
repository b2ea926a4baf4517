"""What a server has taken from each machine: every message applied once, in order, over breaks and restarts.

A message counts as taken after its effect: a server that dies in between sees the message again, so an effect is
recognised by a key of its own (an observation's id, a task and step) or changes nothing the second time. Within
one process nothing is applied twice: an effect that has begun is finished although the connection that brought
the message ends, and a newer connection of the same session waits for it.

The store also tells two holders of one identity apart from a machine that reconnects: a session that another one
has replaced does not come back unless a second process runs with the same credentials.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from podium.errors import InvalidRequest, PermissionDenied, ServerUnavailable

T = TypeVar("T")

_KEPT_SESSIONS = 8
"""Of one machine. A holder that was replaced so many sessions ago counts as new."""
LAST_SEQUENCE = 2**63 - 1
"""What a store can hold; nobody gets there by counting."""


class SequenceGap(InvalidRequest):
    """A machine's messages are not numbered one after the other."""

    code = "SEQUENCE_GAP"
    advice = "Connect again and send every unacknowledged message in order."


class IdentityShared(PermissionDenied):
    """Two processes connect under one name; the one that was replaced is not let back in."""

    code = "CERTIFICATE_SHARED"
    advice = (
        "Find out who else has this machine's key or name: stop the copy and give it a name of its own, or revoke "
        "the certificate and enrol the machine again."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMark:
    """How far one session of a machine was applied."""

    session_id: str
    through: int
    """Everything up to this number was applied; 0 when nothing was."""


class InboxStore(Protocol):
    """Where the marks are kept. One process at a time writes to it."""

    async def sessions(self, peer: str) -> Sequence[SessionMark]:
        """A machine's sessions, the newest last."""
        ...

    async def begin(self, peer: str, session_id: str, through: int) -> None:
        """Make a session the newest of its machine, known before or not."""
        ...

    async def record(self, peer: str, session_id: str, through: int) -> None:
        """Set how far a session was applied; returns once it survives what the store survives."""
        ...


class MemoryInbox:
    """An `InboxStore` that ends with the process."""

    def __init__(self, *, machines: int = 10_000) -> None:
        self._machines = machines
        self._marks: OrderedDict[str, OrderedDict[str, int]] = OrderedDict()

    async def sessions(self, peer: str) -> Sequence[SessionMark]:
        """See `InboxStore`."""
        return [
            SessionMark(session_id=session_id, through=through)
            for session_id, through in self._marks.get(peer, {}).items()
        ]

    async def begin(self, peer: str, session_id: str, through: int) -> None:
        """See `InboxStore`."""
        marks = self._marks.setdefault(peer, OrderedDict())
        self._marks.move_to_end(peer)
        marks[session_id] = through
        marks.move_to_end(session_id)
        if len(marks) > _KEPT_SESSIONS:
            marks.popitem(last=False)
        if len(self._marks) > self._machines:
            self._marks.popitem(last=False)

    async def record(self, peer: str, session_id: str, through: int) -> None:
        """See `InboxStore`."""
        if session_id in (marks := self._marks.get(peer, OrderedDict())):
            marks[session_id] = through


def _check_number(number: int, field: str) -> None:
    if number > LAST_SEQUENCE:
        raise InvalidRequest(f"{number} is beyond the last number of a message, {LAST_SEQUENCE}", field=field)


@dataclass(slots=True, eq=False)
class InboxSession:
    """One run of a machine's process; its numbering goes on over reconnects."""

    peer: str
    session_id: str
    """Empty for a machine that names none: then every connection is a session."""
    _store: InboxStore
    _applied: int | None
    """None before the first message of a session that is not known here: its number is then believed."""
    confirmed: bool = False
    """Whether its process answered after its greeting: the last words of one that died cannot."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _applying: set["asyncio.Task[object]"] = field(default_factory=set)

    @property
    def applied_through(self) -> int:
        """Everything up to this number was applied."""
        return self._applied or 0

    def skip_to(self, next_sequence: int) -> None:
        """Believe a machine that it was acknowledged everything before a number.

        After a power cut the store can be behind what was acknowledged.
        """
        if self._applied is not None and next_sequence > self._applied + 1:
            self._applied = next_sequence - 1

    async def take(self, sequence: int, apply: Callable[[bool], Awaitable[T]]) -> T:
        """Apply one message and remember that it was; cancelling does not stop what has begun.

        Args:
            sequence: the message's number.
            apply: has the effect; told whether the message was applied before, and then must have none.

        Raises:
            SequenceGap: a message before it is missing.
            InvalidRequest: it is beyond `LAST_SEQUENCE`.
            Exception: what `apply` raised; the message then counts as not applied.
        """
        _check_number(sequence, "sequence")
        task = asyncio.ensure_future(self._take(sequence, apply))
        self._applying.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._applying.discard(task)
        if not task.cancelled():
            task.exception()  # nobody looks at it when the connection has ended

    async def _take(self, sequence: int, apply: Callable[[bool], Awaitable[T]]) -> T:
        async with self._turn:
            if self._applied is None and sequence > 0:
                self._applied = sequence - 1
            applied = self.applied_through
            if sequence == 0 or sequence > applied + 1:
                raise SequenceGap(f"message {sequence} follows message {applied}", field="sequence")
            if sequence <= applied:
                return await apply(True)
            outcome = await apply(False)
            if self.session_id:
                await self._store.record(self.peer, self.session_id, sequence)
            self._applied = sequence
            return outcome


class Inbox:
    """The sessions of every machine that connects here."""

    def __init__(self, store: InboxStore, *, machines: int = 10_000) -> None:
        self._store = store
        self._machines = machines
        self._current: OrderedDict[str, InboxSession] = OrderedDict()
        self._opening = asyncio.Lock()

    async def open(
        self, peer: str, session_id: str, *, next_sequence: int = 0, connected: Callable[[], bool]
    ) -> InboxSession:
        """The session that a machine goes on with or begins.

        Args:
            peer: the machine.
            session_id: of its process; empty when it names none.
            next_sequence: the first number that the machine still keeps or will send; 0 when it does not say.
            connected: whether the machine's present session has a connection now.

        Raises:
            IdentityShared: another process took this session's place and is alive.
            ServerUnavailable: another process has just connected, and whether it is alive is not known yet.
            InvalidRequest: `next_sequence` is beyond `LAST_SEQUENCE`.
        """
        _check_number(next_sequence, "hello.next_sequence")
        async with self._opening:
            session = await self._open(peer, session_id, connected)
        session.skip_to(next_sequence)
        self._current[peer] = session
        self._current.move_to_end(peer)
        if len(self._current) > self._machines:
            self._current.popitem(last=False)
        return session

    async def _open(self, peer: str, session_id: str, connected: Callable[[], bool]) -> InboxSession:
        if not session_id:
            # It may have started anew, so its numbers are believed anew.
            return InboxSession(peer, session_id, self._store, None)
        current = self._current.get(peer)
        if current is not None and current.session_id == session_id:
            return current
        marks = await self._store.sessions(peer)
        known = next((mark for mark in marks if mark.session_id == session_id), None)
        if known is None:
            await self._store.begin(peer, session_id, 0)
            return InboxSession(peer, session_id, self._store, None)
        if marks[-1] is not known:
            confirmed = current.confirmed if current is not None else marks[-1].through > 0
            if confirmed:
                raise IdentityShared(f"{peer} was replaced by another process of the same name, and is back")
            if connected():
                raise ServerUnavailable(f"another process of {peer} has just connected")
            # What replaced it was the last word of a process that is gone.
            await self._store.begin(peer, session_id, known.through)
        return InboxSession(peer, session_id, self._store, known.through, confirmed=known.through > 0)

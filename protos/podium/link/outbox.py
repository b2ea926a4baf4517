"""What a machine has to send: numbered messages that are kept until the other side has acknowledged them.

One outbox belongs to one session: numbers begin at 1 and go on over reconnects. What is kept lies behind
`OutboxStore`: in memory here; a store on disk makes the session outlive the process.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from podium.errors import LimitExceeded


class Numbered(Protocol):
    """A protobuf message that carries its number."""

    sequence: int

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        """Its size on the wire."""
        ...


M = TypeVar("M", bound=Numbered)


class OutboxFull(LimitExceeded):
    """So much waits for the other side's acknowledgement that nothing more is taken."""

    code = "OUTBOX_FULL"
    retryable = True
    advice = "Wait until the link is up again and what waits has been sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxLimits:
    """How much may wait to be acknowledged."""

    messages: int = 10_000
    size_bytes: int = 64 * 1024 * 1024


class OutboxStore(Protocol[M]):
    """Where an outbox keeps its messages."""

    session_id: str
    """Under which the numbers count; a store that outlives the process keeps it with them."""

    def last(self) -> int:
        """The highest number ever added in this session; 0 when none was."""
        ...

    def add(self, message: M) -> None:
        """Keep a message, whose number follows the last; returns once it would survive what the store survives."""
        ...

    def drop_through(self, sequence: int) -> None:
        """Forget every message up to a number."""
        ...

    def get(self, sequence: int) -> M | None:
        """The message of a number; None when it was dropped."""
        ...

    def kept(self) -> Iterable[M]:
        """Every message that is kept, in order."""
        ...


class MemoryOutbox(Generic[M]):
    """An `OutboxStore` that ends with the process."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._last = 0
        self._messages: OrderedDict[int, M] = OrderedDict()

    def last(self) -> int:
        """See `OutboxStore`."""
        return self._last

    def add(self, message: M) -> None:
        """See `OutboxStore`."""
        self._last = message.sequence
        self._messages[message.sequence] = message

    def drop_through(self, sequence: int) -> None:
        """See `OutboxStore`."""
        while self._messages and next(iter(self._messages)) <= sequence:
            self._messages.popitem(last=False)

    def get(self, sequence: int) -> M | None:
        """See `OutboxStore`."""
        return self._messages.get(sequence)

    def kept(self) -> Iterable[M]:
        """See `OutboxStore`."""
        return self._messages.values()


class Outbox(Generic[M]):
    """Numbers what is sent, keeps it until it is acknowledged, and says what is to be sent (again)."""

    def __init__(self, store: OutboxStore[M], limits: OutboxLimits = OutboxLimits()) -> None:
        self._store = store
        self._limits = limits
        sizes = [message.ByteSize() for message in store.kept()]
        self._messages, self._size_bytes = len(sizes), sum(sizes)
        # What an earlier process sent is not known: it may all have arrived.
        self._last_sent = store.last()

    @property
    def session_id(self) -> str:
        """Under which the numbers count."""
        return self._store.session_id

    @property
    def next_sequence(self) -> int:
        """The number of the first message that is kept or will come: everything before it was acknowledged."""
        return next((message.sequence for message in self._store.kept()), self._store.last() + 1)

    def __len__(self) -> int:
        """How many messages wait to be acknowledged."""
        return self._messages

    def __iter__(self) -> Iterator[M]:
        """What waits to be acknowledged, in order."""
        return iter(tuple(self._store.kept()))

    def put(self, message: M, *, essential: bool = False) -> int:
        """Number a message and keep it; its number.

        Args:
            message: gets its number here.
            essential: take it also past the limits, because the other side waits for it and asked for few such.

        Raises:
            OutboxFull: too much waits already; the message was not taken.
        """
        message.sequence = self._store.last() + 1
        size_bytes = message.ByteSize()
        limits = self._limits
        if not essential and (
            self._messages >= limits.messages or self._size_bytes + size_bytes > limits.size_bytes
        ):
            raise OutboxFull(
                f"{self._messages} messages of {self._size_bytes} bytes wait to be acknowledged; "
                f"{limits.messages} messages or {limits.size_bytes} bytes may"
            )
        self._store.add(message)
        self._messages += 1
        self._size_bytes += size_bytes
        return message.sequence

    def following(self, sequence: int) -> M | None:
        """The first message after a number that is still kept; it counts as sent from now on."""
        for number in range(max(sequence + 1, self.next_sequence), self._store.last() + 1):
            if (message := self._store.get(number)) is not None:
                self._last_sent = max(self._last_sent, number)
                return message
        return None

    def acknowledge(self, through: int) -> None:
        """Forget what the other side has; what was never sent cannot have arrived, whatever it says."""
        through = min(through, self._last_sent)
        for message in self._store.kept():
            if message.sequence > through:
                break
            self._messages -= 1
            self._size_bytes -= message.ByteSize()
        self._store.drop_through(through)

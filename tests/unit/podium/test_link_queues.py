"""Outbox and inbox: what is kept, what is believed, what is applied."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cloud.inbox import SqliteInbox
from podium.errors import DataCorrupt, InvalidRequest, ServerUnavailable, StorageFull
from podium.link.inbox import IdentityShared, Inbox, InboxSession, InboxStore, MemoryInbox, SequenceGap
from podium.link.outbox import MemoryOutbox, Outbox, OutboxFull, OutboxLimits
from podium.v1 import edge_pb2
from tests.contract.bus.scenario import in_loop


def _message(name: str = "o", size_bytes: int = 0) -> edge_pb2.ConnectRequest:
    observation = edge_pb2.Observation(observation_id=name, payload_json=b"x" * size_bytes)
    return edge_pb2.ConnectRequest(observation=observation)


def _outbox(**limits: int) -> Outbox[edge_pb2.ConnectRequest]:
    return Outbox(MemoryOutbox[edge_pb2.ConnectRequest]("s"), OutboxLimits(**limits))


def test_messages_are_numbered_sent_in_order_and_kept_until_they_are_acknowledged() -> None:
    outbox = _outbox()
    assert (outbox.next_sequence, outbox.following(0)) == (1, None)
    assert [outbox.put(_message(name)) for name in "abc"] == [1, 2, 3]
    sent = [outbox.following(number) for number in range(3)]
    assert [message.observation.observation_id for message in sent if message] == ["a", "b", "c"]
    outbox.acknowledge(2)
    assert (len(outbox), outbox.next_sequence, [message.sequence for message in outbox]) == (1, 3, [3])
    outbox.acknowledge(1)  # an acknowledgement that was overtaken
    assert outbox.next_sequence == 3
    outbox.acknowledge(3)
    assert (len(outbox), outbox.next_sequence) == (0, 4)


def test_what_was_never_sent_is_not_forgotten_whatever_is_acknowledged() -> None:
    outbox = _outbox()
    outbox.put(_message("a"))
    outbox.put(_message("b"))
    outbox.following(0)
    outbox.acknowledge(2**63)
    assert [message.sequence for message in outbox] == [2]


@pytest.mark.parametrize("limits", [{"messages": 2}, {"size_bytes": 2_100}], ids=["messages", "bytes"])
def test_an_outbox_that_is_full_says_so_and_takes_again_what_there_is_room_for(limits: dict[str, int]) -> None:
    outbox = _outbox(**limits)
    outbox.put(_message(size_bytes=1_000))
    outbox.put(_message(size_bytes=1_000))
    with pytest.raises(OutboxFull) as caught:
        outbox.put(_message(size_bytes=1_000))
    assert caught.value.retryable
    assert outbox.put(_message(size_bytes=1_000), essential=True) == 3
    for sequence in (0, 1, 2):
        outbox.following(sequence)
    outbox.acknowledge(3)
    assert outbox.put(_message(size_bytes=1_000)) == 4


def test_an_outbox_goes_on_with_what_its_store_kept() -> None:
    store: MemoryOutbox[edge_pb2.ConnectRequest] = MemoryOutbox("s")
    before = Outbox(store)
    for name in "abc":
        before.put(_message(name))
    before.following(0)
    before.acknowledge(1)
    after = Outbox(store)
    assert (len(after), after.next_sequence, after.session_id) == (2, 2, "s")
    after.acknowledge(3)  # the process before may have sent it all
    assert after.put(_message("d")) == 4


class _Effects:
    def __init__(self) -> None:
        self.seen: list[int] = []
        self.go = asyncio.Event()
        self.go.set()

    def of(self, number: int) -> Callable[[bool], Awaitable[str]]:
        async def apply(again: bool) -> str:
            await self.go.wait()
            if not again:
                self.seen.append(number)
            return f"answer {number}"

        return apply


def _never() -> bool:
    return False


async def _take(session: InboxSession, effects: _Effects, *numbers: int) -> None:
    for number in numbers:
        assert await session.take(number, effects.of(number)) == f"answer {number}"


async def _store(kind: str, folder: Path) -> InboxStore:
    return MemoryInbox() if kind == "memory" else await SqliteInbox.open(folder / "inbox.sqlite")


async def _close(store: InboxStore) -> None:
    if isinstance(store, SqliteInbox):
        await store.close()


both = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@both
@in_loop
async def test_a_message_is_applied_once_and_answered_each_time(kind: str, tmp_path: Path) -> None:
    store, effects = await _store(kind, tmp_path), _Effects()
    session = await Inbox(store).open("pi", "s", connected=_never)
    await _take(session, effects, 1, 2, 2, 1, 3)
    assert (effects.seen, session.applied_through) == ([1, 2, 3], 3)
    with pytest.raises(SequenceGap):
        await session.take(5, effects.of(5))
    with pytest.raises(SequenceGap):
        await session.take(0, effects.of(0))
    # A server that was started anew.
    again = await Inbox(store).open("pi", "s", connected=_never)
    assert again.applied_through == 3
    await _take(again, effects, 2, 3, 4)
    assert effects.seen == [1, 2, 3, 4]
    await _close(store)


@both
@in_loop
async def test_a_mark_that_lies_behind_what_was_acknowledged_is_put_right_by_the_machine(
    kind: str, tmp_path: Path
) -> None:
    store, effects = await _store(kind, tmp_path), _Effects()
    await _take(await Inbox(store).open("pi", "s", connected=_never), effects, 1, 2)
    session = await Inbox(store).open("pi", "s", next_sequence=5, connected=_never)  # after a power cut
    await _take(session, effects, 5)
    assert effects.seen == [1, 2, 5]
    back = await Inbox(store).open("pi", "s", next_sequence=3, connected=_never)
    assert back.applied_through == 5
    await _close(store)


@both
@in_loop
async def test_a_number_that_no_store_holds_is_refused_before_it_has_an_effect(kind: str, tmp_path: Path) -> None:
    store, effects = await _store(kind, tmp_path), _Effects()
    session = await Inbox(store).open("pi", "s", connected=_never)
    for number in (2**63, 2**64 - 1):
        with pytest.raises(InvalidRequest, match="beyond"):
            await session.take(number, effects.of(number))
        with pytest.raises(InvalidRequest, match="beyond"):
            await Inbox(store).open("pi", "t", next_sequence=number, connected=_never)
    await _take(session, effects, 2**63 - 1)
    assert (effects.seen, session.applied_through) == ([2**63 - 1], 2**63 - 1)
    await _close(store)


@in_loop
async def test_an_effect_that_has_begun_is_finished_and_a_new_connection_waits_for_it() -> None:
    inbox, effects = Inbox(MemoryInbox()), _Effects()
    first = await inbox.open("pi", "s", connected=_never)
    effects.go.clear()
    broken = asyncio.create_task(first.take(1, effects.of(1)))
    await asyncio.sleep(0)
    broken.cancel()  # its connection ended
    second = await inbox.open("pi", "s", connected=_never)
    again = asyncio.create_task(second.take(1, effects.of(1)))
    await asyncio.sleep(0)
    effects.go.set()
    assert await again == "answer 1"
    assert effects.seen == [1]


@in_loop
async def test_what_could_not_be_applied_does_not_count() -> None:
    effects = _Effects()
    session = await Inbox(MemoryInbox()).open("pi", "s", connected=_never)

    async def full(again: bool) -> str:
        raise StorageFull("no room")

    with pytest.raises(StorageFull):
        await session.take(1, full)
    await _take(session, effects, 1)
    assert effects.seen == [1]


@both
@in_loop
async def test_a_replaced_session_that_comes_back_is_a_second_holder(kind: str, tmp_path: Path) -> None:
    store, effects = await _store(kind, tmp_path), _Effects()
    inbox = Inbox(store)
    old = await inbox.open("pi", "old", connected=_never)
    await _take(old, effects, 1)
    new = await inbox.open("pi", "new", connected=_never)
    with pytest.raises(ServerUnavailable):  # whether the new one lives is not known yet
        await inbox.open("pi", "old", connected=lambda: True)
    new.confirmed = True
    for _ in range(2):
        with pytest.raises(IdentityShared):
            await inbox.open("pi", "old", connected=lambda: True)
    assert await inbox.open("pi", "new", connected=lambda: True) is new
    await _take(new, effects, 1)
    # Also after the server was started anew, and while nobody is connected.
    with pytest.raises(IdentityShared):
        await Inbox(store).open("pi", "old", connected=_never)
    await _close(store)


@both
@in_loop
async def test_reconnects_restarts_and_last_words_are_no_second_holder(kind: str, tmp_path: Path) -> None:
    store, effects = await _store(kind, tmp_path), _Effects()
    inbox = Inbox(store)
    living = await inbox.open("pi", "living", connected=_never)
    await _take(living, effects, 1)
    for _ in range(3):  # a line that breaks again and again
        assert await inbox.open("pi", "living", connected=lambda: True) is living
    # A greeting of a process that has died meanwhile arrives late; it never answers.
    await inbox.open("pi", "dead", connected=_never)
    back = await inbox.open("pi", "living", connected=_never)
    assert back.applied_through == 1
    # A process that is started anew, again and again.
    for number in range(30):
        session = await inbox.open("pi", f"run {number}", connected=_never)
        await _take(session, effects, 1)
    assert len(await store.sessions("pi")) <= 9
    await _close(store)


@in_loop
async def test_the_oldest_machines_are_forgotten() -> None:
    store = MemoryInbox(machines=2)
    for peer in "abc":
        await store.begin(peer, "s", 1)
        await store.record(peer, "s", 7)
    assert [len(await store.sessions(peer)) for peer in "abc"] == [0, 1, 1]
    await store.record("a", "s", 9)
    assert await store.sessions("a") == []


@in_loop
async def test_a_damaged_file_of_marks_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "inbox.sqlite").write_bytes(b"this is no database" * 1000)
    with pytest.raises(DataCorrupt):
        await SqliteInbox.open(tmp_path / "inbox.sqlite")


@in_loop
async def test_a_disk_without_room_keeps_a_message_unacknowledged(tmp_path: Path) -> None:
    store = await SqliteInbox.open(tmp_path / "inbox.sqlite")

    def no_room(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    inbox, effects = Inbox(store), _Effects()
    session = await inbox.open("pi", "s", connected=_never)
    await store._writer.submit(no_room)

    async def many_machines() -> None:
        for number in range(2_000):
            await inbox.open(f"pi {number}", "s" * 90, connected=_never)

    with pytest.raises(StorageFull):
        await many_machines()
    assert session.applied_through == 0
    await _take(session, effects, 1)
    await store.close()

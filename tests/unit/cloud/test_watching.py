"""What a watch gives out when events are told of in memory: all of them once, or the word to read the log."""

import asyncio

from cloud.bus.watching import MAX_WAITING_EVENTS, Watch
from podium.v1 import event_pb2


def _events(*sequences: int) -> list[event_pb2.Event]:
    return [event_pb2.Event(header=event_pb2.EventHeader(sequence=sequence)) for sequence in sequences]


def _begun(last: int) -> Watch:
    """A watch that has read the log up to a sequence number."""
    watch = Watch(last)
    assert watch.take() is None
    return watch


def _sequences(watch: Watch) -> list[int] | None:
    events = watch.take()
    return None if events is None else [event.header.sequence for event in events]


def test_what_is_told_is_given_out_in_order() -> None:
    watch = _begun(4)
    watch.tell(_events(5, 6))
    watch.tell(_events(7))
    assert _sequences(watch) == [5, 6, 7]
    assert _sequences(watch) == []


def test_what_the_log_gave_already_is_not_given_again() -> None:
    watch = _begun(4)
    watch.tell(_events(5, 6))
    watch.given(_events(5)[0])
    assert _sequences(watch) == [6]


def test_a_gap_anywhere_means_reading_the_log() -> None:
    for told in ((6,), (5, 7), (5, 6, 8)):
        watch = _begun(4)
        for sequence in told:
            watch.tell(_events(sequence))
        assert _sequences(watch) is None


def test_another_process_wrote_while_events_were_waiting() -> None:
    watch = _begun(4)
    watch.tell(_events(5))
    watch.look_again()
    assert _sequences(watch) is None


def test_a_slow_watcher_holds_few_events_and_reads_the_rest() -> None:
    watch = _begun(0)
    for sequence in range(1, 3 * MAX_WAITING_EVENTS):
        watch.tell(_events(sequence))
        assert len(watch._waiting) <= MAX_WAITING_EVENTS
    assert _sequences(watch) is None


def test_waiting_ends_with_news_and_not_without() -> None:
    async def scenario() -> None:
        watch = _begun(0)
        waiting = asyncio.ensure_future(watch.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        watch.tell(_events(1))
        await waiting

    asyncio.run(scenario())

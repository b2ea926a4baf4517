"""What removes blobs that nothing refers to any more."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cloud.blobs.index import Amount
from cloud.blobs.store import BlobStore
from conductor.bus import EventBus
from podium.errors import NotFound, PodiumError

_LOG = logging.getLogger(__name__)

_TASK = "task/"
_ACCEPTED_WITHIN = timedelta(minutes=10)
"""So long after the attempt to accept it a task is in the log, or never will be."""
_PAGE = 500


def holder_of(task_id: str) -> str:
    """What a task's references are kept under."""
    return _TASK + task_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection did, or would do."""

    removed: Amount
    kept: Amount


class GarbageCollector:
    """Removes blobs without references that were neither stored nor asked for within a time of grace."""

    def __init__(
        self, store: BlobStore, bus: EventBus, *, clock: Callable[[], datetime], grace: timedelta
    ) -> None:
        """Collect what no task of a bus refers to.

        Args:
            store: where the blobs are.
            bus: knows the tasks.
            clock: the present moment in UTC.
            grace: time in which whoever stored a blob may hand in the task that refers to it.
        """
        self._store = store
        self._bus = bus
        self._clock = clock
        self._grace = grace
        self._one_at_a_time = asyncio.Lock()

    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Remove what may go; with `dry_run` only say how much that is.

        Raises:
            StorageFull, DatabaseCorrupt, InternalError: the store failed; what was removed stays removed.
        """
        async with self._one_at_a_time:
            if await self._store.must_recover():
                await self._recover()
            now = self._clock()
            await self._settle_pending()
            before = now - self._grace
            if dry_run:
                removed = await self._store.unused(before)
                total = await self._store.total()
                kept = Amount(
                    count=total.count - removed.count, total_bytes=total.total_bytes - removed.total_bytes
                )
                return Collected(removed=removed, kept=kept)
            await self._store.remove_abandoned()
            count = total_bytes = 0
            while (some := await self._store.remove_unused(before)).count:
                count, total_bytes = count + some.count, total_bytes + some.total_bytes
            if count:
                _LOG.info("removed %s blobs with %s bytes that nothing refers to", count, total_bytes)
            removed = Amount(count=count, total_bytes=total_bytes)
            return Collected(removed=removed, kept=await self._store.total())

    async def keep_collecting(self, every: timedelta) -> None:
        """Collect now and then until cancelled."""
        while True:
            try:
                await self.collect()
            except PodiumError as error:
                _LOG.error("unused blobs were not removed: %s", error.code, exc_info=error)
            await asyncio.sleep(every.total_seconds())

    async def _settle_pending(self) -> None:
        for holder in await self._store.pending(_ACCEPTED_WITHIN):
            try:
                await self._bus.caller_of(holder.removeprefix(_TASK))
            except NotFound:
                await self._store.release(holder)
            else:
                await self._store.settle(holder)

    async def _recover(self) -> None:
        """Note anew what the tasks in the log refer to."""
        _LOG.warning("the references to blobs are read from the log of tasks")
        last = ""
        while rows := await self._bus.rows(limit=_PAGE, before=last):
            for row in rows:
                accepted = (await self._bus.read(row.task_id))[0].task_accepted
                if accepted.attachments:
                    hashes = {blob.sha256 for blob in accepted.attachments}
                    await self._store.recover(holder_of(row.task_id), hashes, caller=accepted.caller)
            last = rows[-1].task_id
        await self._store.recovered()

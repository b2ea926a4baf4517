"""The device's day: every new document of a folder is read and sent, and each answer is shown when it comes.

Reading goes one document at a time, answers are followed side by side: a task that takes long holds up nobody.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edge.pipeline import DocumentSeen, FileUnreadable
from edge.watching import FolderSource, Found
from podium.errors import InternalError, PodiumError
from podium.v1 import task_pb2

POLL_INTERVAL_S = 0.5
TRY_AGAIN_AFTER_S = 10.0
TRY_AGAIN_AT_THE_LATEST_S = 600.0
"""What the cloud has no room for is tried after 10 s, 20 s, 40 s and so on, and then every so often."""
MAX_PUT_OFF = 8
"""So many documents wait for room in the cloud, with what was read of them; past it no other is read."""
_UNREADABLE_FOR_S = 60.0
_LISTING_SHARE = 0.1
"""Of the time at the most is spent on listing: with ten thousand files in the folder it takes a while."""
MAX_FOLLOWED = 32
"""So many answers are waited for at once; past it the cloud is behind, and nothing more is sent."""


class Reader(Protocol):
    """What the run needs of a device; see `edge.device.Device`."""

    async def read(self, path: Path) -> DocumentSeen:
        """Read one file."""
        ...

    async def send(self, seen: DocumentSeen) -> str:
        """Send what was read; the id of its task."""
        ...

    async def wait(self, task_id: str) -> task_pb2.Task:
        """Follow a task until it has ended or waits for a person."""
        ...

    def require_link(self) -> None:
        """Raise the link's error when it has ended for good."""
        ...


@dataclass(slots=True)
class _PutOff:
    """A document that the cloud would not take now."""

    seen: DocumentSeen
    until_s: float = 0.0
    wait_s: float = 0.0
    said: str = ""
    """The code of the error that was told last."""


class FolderRun:
    """Takes the documents of one folder to the cloud until it is cancelled or the link ends for good."""

    def __init__(
        self,
        device: Reader,
        source: FolderSource,
        *,
        show: Callable[[str, task_pb2.Task], None],
        say: Callable[[str], None],
        clock_s: Callable[[], float],
    ) -> None:
        """Put it together.

        Args:
            device: reads and sends.
            source: the folder.
            show: given the file's name and its task, once the task has ended or waits for a person.
            say: told what went wrong, in words.
            clock_s: the file system's clock, seconds since 1970.
        """
        self._device = device
        self._source = source
        self._show = show
        self._say = say
        self._clock_s = clock_s
        self._following: set[asyncio.Task[None]] = set()
        self._unreadable: dict[str, float] = {}
        self._put_off: dict[str, _PutOff] = {}

    async def run(self) -> None:
        """Go round and round.

        Raises:
            PodiumError: the link has ended for good.
        """
        try:
            while True:
                self._device.require_link()
                await self.one_round()
        finally:
            for following in self._following:
                following.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)

    async def one_round(self) -> None:
        """Read and send what is new now, and pause.

        Raises:
            PodiumError: the link has ended for good.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            new = await asyncio.to_thread(self._source.new_files, now_s=self._clock_s())
        except OSError as error:
            self._say(f"the folder cannot be listed now: {error}")
            await asyncio.sleep(TRY_AGAIN_AFTER_S)
            return
        now_s = loop.time()
        self._unreadable = {mark: until_s for mark, until_s in self._unreadable.items() if until_s > now_s}
        marks = {found.mark for found in new}
        self._put_off = {mark: waiting for mark, waiting in self._put_off.items() if mark in marks}
        for found in new:
            if self._is_due(found.mark):
                await self._take(found)
        await asyncio.sleep(max(POLL_INTERVAL_S, (now_s - began_s) / _LISTING_SHARE))

    def _is_due(self, mark: str) -> bool:
        waiting = self._put_off.get(mark)
        if waiting is not None:
            return waiting.until_s <= asyncio.get_running_loop().time()
        return mark not in self._unreadable and len(self._put_off) < MAX_PUT_OFF

    async def _take(self, found: Found) -> None:
        waiting = self._put_off.get(found.mark)
        seen = waiting.seen if waiting is not None else await self._read(found)
        if seen is None:
            return
        task_id = await self._send(found, seen)
        if task_id is None:
            return
        self._note(found, task_id)
        while len(self._following) >= MAX_FOLLOWED:
            await asyncio.wait(self._following, return_when=asyncio.FIRST_COMPLETED)
        following = asyncio.create_task(self._follow(found.name, task_id))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def _read(self, found: Found) -> DocumentSeen | None:
        try:
            return await self._device.read(found.path)
        except FileUnreadable as error:
            # Rights or a share may come back; the other files need not wait for that.
            self._say(f"{found.name}: {error.message}")
            self._unreadable[found.mark] = asyncio.get_running_loop().time() + _UNREADABLE_FOR_S
        except PodiumError as error:
            self._refuse(found, error)
        except Exception as error:  # noqa: BLE001 - a file that trips a defect must not stop every other, for ever
            defect = InternalError(f"reading it raised {type(error).__name__}: {str(error)[:300]}")
            self._refuse(found, defect)
        return None

    async def _send(self, found: Found, seen: DocumentSeen) -> str | None:
        try:
            task_id = await self._device.send(seen)
        except PodiumError as error:
            self._device.require_link()
            if error.retryable or error.retry_after is not None:
                self._try_again_later(found, seen, error)
            else:
                self._put_off.pop(found.mark, None)
                self._refuse(found, error)
            return None
        self._put_off.pop(found.mark, None)
        return task_id

    def _try_again_later(self, found: Found, seen: DocumentSeen, error: PodiumError) -> None:
        """It stays in the folder; the others need not wait for it, nor the processor read it again."""
        waiting = self._put_off.setdefault(found.mark, _PutOff(seen))
        waiting.wait_s = min(waiting.wait_s * 2 or TRY_AGAIN_AFTER_S, TRY_AGAIN_AT_THE_LATEST_S)
        waiting.until_s = asyncio.get_running_loop().time() + waiting.wait_s
        if waiting.said != error.code:
            waiting.said = error.code
            self._say(f"{found.name} stays here and is tried again later: {error.code}: {error.message}")

    async def _follow(self, name: str, task_id: str) -> None:
        try:
            task = await self._device.wait(task_id)
        except PodiumError as error:
            self._say(f"{name}: the answer of task {task_id} cannot be had: {error.code}: {error.message}")
            return
        self._show(name, task)

    def _refuse(self, found: Found, error: PodiumError) -> None:
        # A file that cannot be used stays where it is and is not tried for ever.
        self._say(f"{found.name} refused: {error.code}: {error.message} {error.next_step}")
        self._note(found, f"{error.code}: {error.message}")

    def _note(self, found: Found, outcome: str) -> None:
        try:
            self._source.handled(found, outcome)
        except OSError as error:
            self._say(
                f"that {found.name} is done cannot be noted: {error}; after a restart it is sent once more, "
                "and the cloud knows it"
            )

"""The device's day: every new document of a folder is read and sent, and each answer is shown when it comes.

Reading goes one document at a time, answers are followed side by side: a task that takes long holds up nobody.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from edge.pipeline import DocumentSeen, FileUnreadable
from edge.watching import FolderSource, Found
from podium.errors import InternalError, PodiumError
from podium.v1 import task_pb2

POLL_INTERVAL_S = 0.5
TRY_AGAIN_AFTER_S = 10.0
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
        for found in new:
            if found.mark not in self._unreadable:
                await self._take(found)
        await asyncio.sleep(max(POLL_INTERVAL_S, (now_s - began_s) / _LISTING_SHARE))

    async def _take(self, found: Found) -> None:
        seen = await self._read(found)
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
        while True:
            try:
                return await self._device.send(seen)
            except PodiumError as error:
                self._device.require_link()
                if not error.retryable:
                    self._refuse(found, error)
                    return None
                self._say(f"{found.name} is to be tried again: {error.code}: {error.message}")
            await asyncio.sleep(TRY_AGAIN_AFTER_S)

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

"""The server's end of a program that stays: the server speaks with it, its warden holds it."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from agents.sandbox.child import Child, WardenLost


class Resident:
    """One program. It runs while there are calls; its start counts as the first, until `ended_call`."""

    def __init__(self, child: Child) -> None:
        """Listen to the warden of a program that was started with streams."""
        self._child = child
        self._numbers = itertools.count(1)
        self._calls = 1
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._listening = asyncio.create_task(self._listen())
        self.over = asyncio.Event()
        """Set when the warden has ended it, or it has ended."""
        self.verdict: Mapping[str, Any] = {}
        """Why, as the warden says; see `agents.sandbox.verdicts`."""
        self.worn = False
        """It has used so much of the processor that another should take its place."""

    def began_call(self) -> None:
        """Somebody will wait for an answer: the program runs."""
        self._calls += 1
        self._tell()

    def ended_call(self) -> "asyncio.Future[None]":
        """Nobody waits for this answer any more.

        Returns:
            Done when the program was measured once more, or is over: an answer counts only then.
        """
        self._calls -= 1
        return self._tell()

    async def close(self) -> None:
        """End it with all it started."""
        try:
            await self._child.close(drain=False)
        finally:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    def _tell(self) -> "asyncio.Future[None]":
        measured: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.over.is_set():
            measured.set_result(None)
            return measured
        number = next(self._numbers)
        self._waiting[number] = measured
        self._child.tell({"calls": self._calls, "number": number})
        return measured

    async def _listen(self) -> None:
        try:
            while (said := await self._child.hear())["kind"] == "measured":
                self.worn = said["retire"]
                if not (measured := self._waiting.pop(said["number"])).done():
                    measured.set_result(None)
            self.verdict = said
        except WardenLost as error:
            self.verdict = {"kind": "lost", "message": str(error)}
        finally:
            self.over.set()
            for measured in self._waiting.values():
                if not measured.done():
                    measured.set_result(None)

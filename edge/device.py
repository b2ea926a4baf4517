"""The running device: its document pipeline and its link, put together."""

import asyncio
import json
import math
import random
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeVar

from edge.identity import DeviceIdentity
from edge.link import DeviceLink
from edge.pipeline import DocumentPipeline, DocumentSeen
from edge.work import TracedWork, Work
from podium.client import AsyncClient
from podium.errors import InvalidRequest, NotFound, PodiumError, ServerUnavailable, TimeLimitExceeded
from podium.link import Address
from podium.link.certificates import CertificateExpired, CertificateRefused
from podium.link.renewing import RenewalWatch
from podium.telemetry import span
from podium.v1 import blob_pb2, edge_pb2, task_pb2
from tools.document.places import reread_places
from tools.document.reader import DocumentReader

T = TypeVar("T")

OBSERVATION_KIND = "document_reading"
_TRY_AGAIN_AFTER_S = 1.0
_WATCH_ANEW_AFTER = timedelta(minutes=5)
_SHARE_FOR_REREADING = 0.7
"""Of a step's time limit; the place at hand and the way up take the rest. Half an answer in time is worth more
than a whole one too late."""
PAGE_REREAD = "page_reread"
"""Name of the agent a device runs for the cloud, as its manifest says it."""


def default_device_id(*, once: bool) -> str:
    """The machine's name; a one-off run gets a suffix, so that it does not end a running device's stream."""
    suffix = f"-once-{uuid.uuid4().hex[:8]}" if once else ""
    return f"edge-{socket.gethostname()}{suffix}"


@dataclass(slots=True, eq=False)
class _Client:
    """What calls go over, beside the link; made anew with a new certificate."""

    address: Address
    client: AsyncClient
    calls: int = 0
    """Under way."""


class Device:
    """Reads documents, sends what it read, reads places again when the cloud asks; a context manager."""

    def __init__(
        self,
        identity: DeviceIdentity,
        *,
        threads: int,
        attempts: int | None = None,
        folder: Path | None = None,
        on_state: Callable[[str], None] = lambda state: None,
    ) -> None:
        """Load the models; entering connects.

        Args:
            identity: the device's name, and where the cloud is.
            threads: threads of one model run.
            attempts: see `DeviceLink.run`.
            folder: where documents seen before a restart may still lie.
            on_state: told about the connection, in words.
        """
        self._address = identity.address
        self._pipeline = DocumentPipeline(DocumentReader(threads=threads), device_id=identity.name, folder=folder)
        self._attempts = attempts
        jitter = random.Random()  # noqa: S311 - spreads reconnects, guards nothing
        self._link = DeviceLink(
            identity.address,
            device_id=identity.name,
            software_version=version("podium"),
            capabilities=[PAGE_REREAD],
            handle_step=self._handle_step,
            jitter=jitter,
            on_state=on_state,
            on_failure=self._note_failure,
        )
        self._renewal: RenewalWatch | None = None
        if identity.folder is not None:
            self._renewal = RenewalWatch(
                identity.folder,
                clock=lambda: datetime.now(UTC),
                jitter=jitter.random,
                on_renewed=self._link.connect_anew,
                on_problem=lambda error: on_state(f"certificate not renewed: {error.message} {error.next_step}"),
            )
        self._renewing: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._clients: list[_Client] = []
        # One picture at a time: a page takes all of a small device's memory and cores. A lock would not do: a
        # reading that nobody waits for any more goes on in its thread.
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._link.run(attempts=self._attempts))
        if self._renewal is not None:
            self._renewing = asyncio.create_task(self._renewal.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for task in (self._running, self._renewing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._clients:
            await one.client.close()
        self._reading.shutdown(wait=False, cancel_futures=True)

    async def read(self, path: Path, *, observation_id: str = "") -> DocumentSeen:
        """Read one file on this device.

        Raises:
            FileUnreadable: the file system does not give the file.
            ImageError: it is not a readable PNG, JPEG or PDF, or too large.
        """
        work = partial(self._pipeline.see, path, observation_id=observation_id)
        with span("device.read", always=True) as reading:
            start, begun_s = datetime.now(UTC), time.perf_counter()
            seen = await asyncio.get_running_loop().run_in_executor(self._reading, work)
        took = Work(start=start, duration=timedelta(seconds=time.perf_counter() - begun_s))
        return replace(seen, reading=TracedWork(place=reading.context, work=took))

    async def send(self, seen: DocumentSeen) -> str:
        """Send what was read and return the task it became; crops of doubtful lines go first, as blobs.

        Raises:
            ServerUnavailable: the cloud cannot be reached and `attempts` are used up.
            InvalidRequest: the cloud refused it; sending it again changes nothing.
            LimitExceeded: there is no room now, if it is `retryable` or has a `retry_after`; else it is too large.
        """
        try:
            return await self._sent(seen)
        except InvalidRequest:
            if not seen.scan.crops:
                raise
        # While an observation waits for days for a line, the cloud may let go of crops that nothing refers to yet.
        return await self._sent(seen)

    async def _sent(self, seen: DocumentSeen) -> str:
        with span("device.send", parent=seen.reading.place if seen.reading is not None else None):
            blobs = [
                await self._patiently(partial(self._upload, data, crop.media_type))
                for crop, data in seen.scan.crops
            ]
        observation = observation_of(
            seen, blobs, observed_at=datetime.now(UTC), clock_offset=self._link.clock_offset
        )
        return await self._unless_link_fails(self._link.send(observation))

    async def wait(self, task_id: str) -> task_pb2.Task:
        """Follow a task until it has ended or waits for a person."""

        async def ended() -> task_pb2.Task:
            # Asked anew now and then: a watch over a connection that is dead behind a proxy would never end.
            async with self._client() as client:
                return await client.wait(task_id, time_limit=_WATCH_ANEW_AFTER)

        return await self._patiently(ended)

    def require_link(self) -> None:
        """Check that the link is up or trying.

        Raises:
            PodiumError: it has ended for good, and why.
        """
        if self._running is not None and self._running.done():
            self._running.result()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncClient]:
        """One for the address that counts now; one for an address before it is closed after its last call."""
        address = self._address()
        if not self._clients or self._clients[-1].address != address:
            # Behind a slow line, so patient; a dead one is noticed by the link, and by deadlines here.
            self._clients.append(_Client(address, AsyncClient(address, patient=True)))
        used = self._clients[-1]
        used.calls += 1
        try:
            yield used.client
        finally:
            used.calls -= 1
            for old in [one for one in self._clients[:-1] if not one.calls]:
                self._clients.remove(old)
                await old.client.close()

    async def _upload(self, data: bytes, media_type: str) -> blob_pb2.BlobRef:
        async with self._client() as client:
            return await client.upload_bytes(data, media_type=media_type)

    def _note_failure(self, error: PodiumError) -> None:
        if self._renewal is not None and isinstance(error, CertificateRefused | CertificateExpired):
            self._renewal.hurry()

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, which is begun anew while the cloud is away and the link keeps trying."""
        while True:
            try:
                return await self._unless_link_fails(work())
            except (ServerUnavailable, TimeLimitExceeded):
                self.require_link()
            await asyncio.sleep(_TRY_AGAIN_AFTER_S)

    async def _unless_link_fails(self, work: Awaitable[T]) -> T:
        """The result of `work`; when the link gives up first, the link's error."""
        running = self._running
        if running is None:
            raise RuntimeError("use Device as a context manager")
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, running}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.require_link()
            return await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _handle_step(self, request: edge_pb2.StepRequest) -> bytes:
        if request.agent != PAGE_REREAD:
            raise NotFound(f"this device has no agent {request.agent!r}", agent=request.agent)
        limit_s = request.time_limit.ToTimedelta().total_seconds()
        ends_s = time.monotonic() + _SHARE_FOR_REREADING * limit_s if limit_s else math.inf
        wanted = True

        def has_time() -> bool:
            return wanted and time.monotonic() < ends_s

        work = partial(self._reread, request, has_time)
        try:
            output = await asyncio.get_running_loop().run_in_executor(self._reading, work)
        finally:
            # A thread cannot be cancelled: it is told to stop at the next place.
            wanted = False
        return json.dumps(output, ensure_ascii=False, sort_keys=True, allow_nan=False).encode()

    def _reread(self, request: edge_pb2.StepRequest, has_time: Callable[[], bool]) -> dict[str, Any]:
        document = self._pipeline.document(request.document_sha256)
        return reread_places(document, json.loads(request.input_json), has_time=has_time)


def observation_of(
    seen: DocumentSeen,
    blobs: list[blob_pb2.BlobRef],
    *,
    observed_at: datetime,
    clock_offset: timedelta = timedelta(0),
) -> edge_pb2.Observation:
    """The message that goes up: text, places and references to crops; never the picture.

    Args:
        seen: what was read.
        blobs: crops of doubtful lines, uploaded already.
        observed_at: by this device's clock.
        clock_offset: the cloud's clock minus this one, as far as is known.
    """
    payload = json.dumps(seen.scan.reading.to_json(), ensure_ascii=False, sort_keys=True, allow_nan=False)
    observation = edge_pb2.Observation(
        observation_id=seen.observation_id,
        text=seen.text,
        kind=OBSERVATION_KIND,
        payload_json=payload.encode(),
        blobs=blobs,
    )
    observation.observe_time.FromDatetime(observed_at)
    if seen.reading is not None:
        observation.traceparent = seen.reading.place.traceparent
        observation.work.CopyFrom(seen.reading.work.to_message(clock_offset))
    return observation

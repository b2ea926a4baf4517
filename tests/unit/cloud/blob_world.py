"""A blob store with a clock that obeys, callers, tasks, and a collector."""

import hashlib
import uuid
from datetime import timedelta
from pathlib import Path

from cloud.auth.principal import Principal
from cloud.auth.quotas import CallerQuotas, Quotas
from cloud.auth.roles import CALLER, OPERATOR, REVIEWER, VIEWER
from cloud.blobs.garbage import GarbageCollector, holder_of
from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobStore
from cloud.blobs.uploads import CHUNK_BYTES
from podium.v1 import blob_pb2, event_pb2
from tests.contract.bus.scenario import Clock
from tests.fakes.bus import MemoryBus

GRACE = timedelta(hours=5)


def person(name: str, role: str = CALLER) -> Principal:
    return Principal(name=name, roles=frozenset({role}), kind="caller", caller=name)


ANN, BOB = person("ann"), person("bob")
READERS = [person("vera", VIEWER), person("otto", OPERATOR), person("rita", REVIEWER)]


def named(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class BlobWorld:
    def __init__(self, folder: Path, **quotas: int) -> None:
        self.folder = folder
        self.clock = Clock()
        self.monotonic_s = 0.0
        self.bus = MemoryBus(self.clock)
        self._quotas = Quotas(CallerQuotas(**quotas), monotonic_s=lambda: 0.0)
        self.boot = "boot 1"
        self.open()

    def open(self) -> None:
        limits = BlobLimits(blob_bytes=50_000_000, all_bytes=100_000_000)
        self.store = BlobStore(
            self.folder,
            limits,
            clock=self.clock,
            quotas=self._quotas,
            boot=self.boot,
            monotonic_s=lambda: self.monotonic_s,
        )
        self.collector = GarbageCollector(self.store, self.bus, clock=self.clock, grace=GRACE)

    def restart(self) -> None:
        self.store.close()
        self.open()

    async def put(self, data: bytes, who: Principal = ANN) -> str:
        upload = await self.store.start(named(data), len(data), who)
        try:
            for offset in range(0, 0 if upload.complete else len(data), CHUNK_BYTES):
                await upload.write(offset, data[offset : offset + CHUNK_BYTES])
            await upload.finish()
        finally:
            await upload.close()
        return named(data)

    async def has(self, sha256: str, who: Principal = ANN) -> bool:
        return (await self.store.state(sha256, who)).complete

    async def task(self, *hashes: str, who: Principal = ANN, held: bool = True, settled: bool = True) -> str:
        task_id = str(uuid.uuid4())
        if held:
            await self.store.hold(holder_of(task_id), hashes, caller=who.caller)
        accepted = event_pb2.TaskAccepted(
            request_id=task_id,
            text="x",
            caller=who.caller,
            attachments=[blob_pb2.BlobRef(sha256=sha256) for sha256 in hashes],
        )
        header = event_pb2.EventHeader(task_id=task_id, sequence=1)
        await self.bus.accept(event_pb2.Event(header=header, task_accepted=accepted))
        if held and settled:
            await self.store.settle(holder_of(task_id))
        return task_id

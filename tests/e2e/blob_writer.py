"""Stores blobs, refers to some and removes others until it is killed; says on stdout what is promised.

python -m tests.e2e.blob_writer FOLDER SEED
"""

import asyncio
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cloud.auth.principal import Principal
from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobStore
from tests.unit.cloud.blob_world import named

WHO = Principal.local()


async def write(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    store = BlobStore(
        folder,
        BlobLimits(blob_bytes=10_000_000, all_bytes=10**12),
        clock=lambda: datetime.now(UTC),
    )
    print("open", flush=True)  # noqa: T201 - the test waits for it
    number = 0
    while True:
        number += 1
        data = chance.randbytes(chance.choice((10, 3000, 400_000)))
        upload = await store.start(named(data), len(data), WHO)
        for offset in range(0, len(data), 100_000):
            await upload.write(offset, data[offset : offset + 100_000])
        await upload.finish()
        await upload.close()
        if chance.random() < 0.5:
            await store.hold(f"task/{seed}/{number}", [named(data)], caller="local")
            await store.settle(f"task/{seed}/{number}")
            print(f"held {named(data)}", flush=True)  # noqa: T201 - the test reads it
        if chance.random() < 0.3:
            await store.remove_unused(datetime.now(UTC) + timedelta(seconds=1))


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))

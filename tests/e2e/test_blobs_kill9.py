"""A store that is killed at any moment has every blob that is referred to, and no row without its file."""

import asyncio
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobStore
from tests.e2e.blob_writer import WHO
from tests.integration.server import ROOT
from tests.unit.cloud.blob_world import named

KILLS = 12


@pytest.mark.slow
def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**31)
    print(f"seed {seed}")  # noqa: T201 - to run the same again
    chance = random.Random(seed)
    promised: set[str] = set()
    for number in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.blob_writer", str(tmp_path), str(seed + number)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(chance.uniform(0.0, 0.6))  # the moment is the point
        process.kill()
        said, _ = process.communicate()
        # A line that was cut off is a promise that nobody heard.
        promised |= {line.split()[1] for line in said.splitlines() if line.startswith("held ") and len(line) == 69}
        asyncio.run(_check(tmp_path, promised))
    assert len(promised) > KILLS


async def _check(folder: Path, promised: set[str]) -> None:
    limits = BlobLimits(blob_bytes=10_000_000, all_bytes=10**12)
    store = BlobStore(folder, limits, clock=lambda: datetime.now(UTC))
    on_disk = dict(store._files.blobs())
    indexed = {row[0] for row in store._index._rows("SELECT sha256 FROM blobs", ())}
    assert indexed == on_disk.keys()
    assert promised <= indexed
    assert store.stored_bytes == sum(on_disk.values())
    for sha256 in promised:
        assert named(b"".join([piece async for piece in store.read(sha256)])) == sha256
        assert (await store.state(sha256, WHO)).complete
    store.close()

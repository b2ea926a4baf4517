"""Blobs over lines that break: all of it arrives, and memory stays flat on both sides."""

import asyncio
import random
from pathlib import Path

import pytest

from bench.blobs import over_breaks

MIB = 2**20


@pytest.mark.slow
def test_a_large_blob_over_thirty_breaks_up_and_down_in_flat_memory(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - to run the same again
    up, down = asyncio.run(over_breaks(tmp_path, 256 * MIB, 30, seed))
    for trip in (up, down):
        assert trip.breaks >= 30
        assert trip.client_growth_bytes < 30e6
        assert trip.server_growth_bytes < 30e6

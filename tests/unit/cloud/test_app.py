import asyncio
from typing import Any

import pytest

from cloud import app
from podium.errors import StorageFull
from tests.contract.bus.scenario import in_loop


class _Worker:
    """Fails as often as it is told to, then ends as a stopped worker does."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1
        if self.runs <= self.failures:
            raise StorageFull("no room left")


@in_loop
async def test_a_worker_starts_again_after_a_full_disk_and_ends_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "_WORKER_RESTARTS_AFTER_S", 0)
    worker: Any = _Worker(failures=2)
    await asyncio.wait_for(app._keep_running(worker), 10)
    assert worker.runs == 3
    assert sum("STORAGE_FULL" in record.getMessage() for record in caplog.records) == 2

"""The engines that the suite runs on."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from cloud.bus.embedded import EmbeddedBus
from cloud.telemetry.metrics import Metrics
from cloud.telemetry.observed_bus import ObservedBus
from conductor.bus import EventBus
from tests.contract.bus.scenario import Clock
from tests.fakes.bus import MemoryBus

OpenBus = Callable[[], AbstractAsyncContextManager[EventBus]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["embedded", "memory", "observed"])
def open_bus(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> OpenBus:
    @asynccontextmanager
    async def open_one() -> AsyncIterator[EventBus]:
        bus: EventBus
        if request.param == "embedded":
            bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=clock)
        elif request.param == "observed":
            bus = ObservedBus(MemoryBus(clock), Metrics(lambda name: True, process=False))
        else:
            bus = MemoryBus(clock)
        try:
            yield bus
        finally:
            await bus.close()

    return open_one

"""The engines that the suite runs on."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from cloud.bus.embedded import EmbeddedBus
from conductor.bus import EventBus
from tests.contract.bus.scenario import Clock

OpenBus = Callable[[], AbstractAsyncContextManager[EventBus]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["embedded"])
def open_bus(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> OpenBus:
    @asynccontextmanager
    async def open_one() -> AsyncIterator[EventBus]:
        bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=clock)
        try:
            yield bus
        finally:
            await bus.close()

    return open_one

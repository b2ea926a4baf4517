"""One desk a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cloud.identity.ground import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    ground.store.close()

from pathlib import Path

import pytest

from tests.unit.tools.artefacts.signed import Desk


@pytest.fixture
def desk(tmp_path: Path):
    desk = Desk(tmp_path)
    yield desk
    desk.registry.close()

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.tools.sql.shop import build_shop, shop_model
from tools.sql.model import SemanticModel
from tools.sql.warehouse import Warehouse


@pytest.fixture(scope="session")
def shop_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    build_shop(path)
    return path


@pytest.fixture(scope="session")
def shop(shop_path: Path) -> Iterator[Warehouse]:
    with Warehouse(shop_path) as warehouse:
        yield warehouse


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> SemanticModel:
    return shop_model(tmp_path_factory.mktemp("model"))

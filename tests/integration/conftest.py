"""One server for all tests of a module."""

from collections.abc import Iterator

import grpc
import pytest

from tests.integration.server import Running, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with server.channel() as channel:
        yield channel

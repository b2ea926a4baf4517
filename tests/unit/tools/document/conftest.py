"""One reader with the real models for all tests here, and no network for any of them."""

import socket

import pytest

from tools.document.reader import DocumentReader


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tries to connect fails the test: reading a document never needs the network."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(scope="session")
def reader() -> DocumentReader:
    return DocumentReader()

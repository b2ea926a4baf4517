"""A server on a data directory that was damaged: it starts, or says with a type which file and what to do."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.client import Client
from podium.errors import PodiumError
from tests.integration.identity.ground import enrolled
from tests.integration.server import serving

_HEALED = frozenset(
    {"audit/keys.sqlite", "blobs/index.sqlite", "operator.token", "server.lock", "audit/ledger.lock"}
)
"""Made anew from what is elsewhere, or only locked."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that was used and stopped."""
    folder = tmp_path_factory.mktemp("sound")
    with serving(folder / "data", insecure_loopback=False) as server, Client(server.tls_address()) as client:
        enrolled(server, folder / "device")
        client.issue_token("ann", ["caller"])
        client.revoke_tokens("ann")
        client.set_agent_enabled(client.agents()[0].name, enabled=False)
    return folder / "data"


def _files(data: Path) -> list[str]:
    return sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file())


def _refusal(data: Path) -> PodiumError | None:
    """What a start on it ends with; None when the server answers. Anything untyped fails the test."""
    try:
        with serving(data, insecure_loopback=False) as server, Client(server.tls_address()) as client:
            client.list()
    except PodiumError as error:
        return error
    return None


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(max(1, path.stat().st_size)))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_half, _zeros, _folder], ids=lambda damage: damage.__name__.strip("_"))
def test_every_damaged_file_is_named_or_healed(
    sound: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for name in _files(sound):
        data = tmp_path / name.replace("/", "-")
        shutil.copytree(sound, data)
        damage(data / name)
        refusal = _refusal(data)
        if refusal is None:
            # A signing key of zeros cannot be told from another; tokens of the one before are no longer good.
            assert name in _HEALED or name == "capability.key", f"{name} was damaged and nobody noticed"
        else:
            assert str(data) in refusal.message, (name, refusal)
            assert refusal.next_step


@pytest.mark.parametrize(
    "change",
    ["UPDATE certificates SET state = 'currant'", "UPDATE certificates SET expire_time = 1e300"],
)
def test_a_record_of_a_certificate_that_makes_no_sense_stops_the_server(
    sound: Path, tmp_path: Path, change: str
) -> None:
    data = tmp_path / "data"
    shutil.copytree(sound, data)
    with sqlite3.connect(data / "identity.sqlite") as rows:
        rows.execute(change)
    rows.close()
    refusal = _refusal(data)
    assert refusal is not None
    assert refusal.code == "DATABASE_CORRUPT"
    assert "identity.sqlite" in refusal.message

"""A server on a data directory that was damaged: it starts, or says with a type which file and what to do."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.client import Client
from podium.errors import PodiumError
from tests.integration.command_line import podium
from tests.integration.identity.ground import enrolled
from tests.integration.server import serving

_HEALED = frozenset(
    {"audit/keys.sqlite", "blobs/index.sqlite", "operator.token", "server.lock", "audit/ledger.lock"}
)
"""Made anew from what is elsewhere, or only locked."""
_FORGETS_NOTHING = frozenset(
    {"capability.key", "tokens.key", "tls/ca.pem", "tls/server.key", "tls/server.pem", "contents.json"}
)
"""Made anew where they are missing: what the old key vouched for is refused, and nothing else is lost."""


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


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _gone(path: Path) -> None:
    path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [_half, _zeros, _folder, _empty, _gone], ids=lambda damage: damage.__name__.strip("_")
)
def test_every_damaged_file_is_named_or_healed(
    sound: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for name in _files(sound):
        data = tmp_path / name.replace("/", "-")
        shutil.copytree(sound, data)
        damage(data / name)
        refusal = _refusal(data)
        if refusal is None:
            # A signing key of zeros cannot be told from another.
            allowed = _HEALED | (_FORGETS_NOTHING if damage is _gone else {"capability.key"})
            assert name in allowed, f"{name} was damaged and nobody noticed"
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


def test_a_log_that_is_gone_is_not_made_anew_and_health_check_says_so(sound: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(sound, data)
    (data / "events.sqlite").unlink()
    health = podium("health-check", "--data", str(data), "--json")
    assert health.status == 1
    said = {check["name"]: check["detail"] for check in health.json["checks"] if not check["ok"]}
    for name in ("data", "server"):
        assert said[name].startswith("DATA_MISSING"), said
        assert "events.sqlite is gone" in said[name]
    assert not (data / "events.sqlite").exists()
    entry = json.loads((data / "contents.json").read_text())
    entry["files"].remove("events.sqlite")
    (data / "contents.json").write_text(json.dumps(entry))
    assert _refusal(data) is None

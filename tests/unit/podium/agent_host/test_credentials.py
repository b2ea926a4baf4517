"""What a host makes of its identity's files."""

import json
from pathlib import Path

import pytest

from podium.agent_host.credentials import HostCredentials
from podium.errors import InvalidRequest
from podium.link import IdentityUnusable


def identity(folder: Path, *, kind: str) -> Path:
    about = {"kind": kind, "name": "a", "server": "127.0.0.1:1", "expires": "2027-01-01T00:00:00+00:00"}
    (folder / "identity.json").write_text(json.dumps(about))
    for name in ("key.pem", "certificate.pem", "ca.pem"):
        (folder / name).write_text("")
    return folder


def test_an_authority_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(IdentityUnusable, match=r"ca\.pem holds no certificate"):
        HostCredentials(identity(tmp_path, kind="agent_host"))


def test_another_machine_is_no_host(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="identity of a device"):
        HostCredentials(identity(tmp_path, kind="device"))

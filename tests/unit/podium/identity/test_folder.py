"""The files of an identity: all old or all new, whenever the power goes."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from podium.errors import StorageFull
from podium.identity.folder import install, locked, next_key
from podium.link import IdentityUnusable, MachineIdentity
from podium.link.machine import CA_FILE, CERTIFICATE_FILE, IDENTITY_FILE, KEY_FILE

ROOT = Path(__file__).parents[4]


def files(mark: str, key: bytes = b"") -> dict[str, bytes]:
    about = {"kind": "device", "name": mark, "server": "h:1", "expires": "2027-01-01T00:00:00+00:00"}
    return {
        KEY_FILE: key or f"key {mark}".encode(),
        CERTIFICATE_FILE: f"certificate {mark}".encode(),
        CA_FILE: f"ca {mark}".encode(),
        IDENTITY_FILE: json.dumps(about).encode(),
    }


def mark_of(folder: Path) -> str:
    """Which set is in force; it must be whole."""
    found = MachineIdentity.load(folder)
    assert found.key_pem == f"key {found.name}".encode()
    assert found.certificate_pem == f"certificate {found.name}".encode()
    assert found.ca_pem == f"ca {found.name}".encode()
    return found.name


def test_a_set_is_put_in_force_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "identity"
    with locked(folder):
        for mark in ("a", "b", "c"):
            install(folder, mark, files(mark))
            assert mark_of(folder) == mark
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert (folder / CERTIFICATE_FILE).read_bytes() == b"certificate c"  # plain names work for other tools too
    assert sorted(path.name for path in folder.glob("set-*")) == ["set-b", "set-c"]


def test_a_key_is_on_disk_before_it_is_used_and_found_again(tmp_path: Path) -> None:
    with locked(tmp_path):
        key = next_key(tmp_path)
        assert next_key(tmp_path) == key
        assert stat.S_IMODE((tmp_path / "next-key.pem").stat().st_mode) == 0o600
        install(tmp_path, "a", files("a"))
        assert next_key(tmp_path) != key


def test_a_damaged_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "next-key.pem").write_bytes(b"")
    with pytest.raises(IdentityUnusable, match=r"next-key\.pem"):
        next_key(tmp_path)


def test_what_cannot_be_written_leaves_the_old_set(tmp_path: Path) -> None:
    install(tmp_path, "a", files("a"))
    (tmp_path / "set-b").write_bytes(b"in the way")
    with pytest.raises(IdentityUnusable):
        install(tmp_path, "b", files("b"))
    assert mark_of(tmp_path) == "a"
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(IdentityUnusable, match="plain"), locked(tmp_path / "plain"):
        pass


def test_a_full_disk_leaves_the_old_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "a", files("a"))

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageFull):
            install(tmp_path, "b", files("b"))
    assert mark_of(tmp_path) == "a"
    install(tmp_path, "b", files("b"))
    assert mark_of(tmp_path) == "b"


_KILLED = """
import os, signal, sys
from pathlib import Path
from podium.identity.folder import install
from tests.unit.podium.identity.test_folder import files
folder, died = Path(sys.argv[1]), 0
for point in range(1, 500):
    process = os.fork()
    if process == 0:
        left = point
        def count(event, arguments):
            global left
            if event in ("open", "os.rename", "os.mkdir", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        install(folder / str(point), "b", files("b"))
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    if not os.WIFSIGNALED(status):
        break
    died += 1
print(died)
"""


@pytest.mark.parametrize("before", ["a", ""])
def test_kill_9_at_every_step_leaves_the_old_set_or_the_new_one(tmp_path: Path, before: str) -> None:
    if before:
        for point in range(1, 100):
            install(
                tmp_path / str(point) if (tmp_path / str(point)).mkdir() is None else tmp_path, "a", files("a")
            )
    else:
        for point in range(1, 100):
            (tmp_path / str(point)).mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    died = int(ran.stdout)
    assert died > 15
    found = []
    for point in range(1, died + 2):
        folder = tmp_path / str(point)
        try:
            found.append(mark_of(folder))
        except IdentityUnusable:
            found.append("")
        install(folder, "b", files("b"))  # and whatever was left is no hindrance
        assert mark_of(folder) == "b"
    assert set(found) == {before, "b"}
    assert found == sorted(found, key=lambda mark: mark == "b")

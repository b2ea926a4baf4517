"""The files of a machine's identity, changed all at once: a crash leaves the old ones or the new ones.

Each set lies in a folder of its own, named after the certificate's serial number. ``current`` is a symbolic link
to the set in force and is exchanged by one rename; ``key.pem`` and the others are links through it. ::

    DIR/identity.json -> current/identity.json      DIR/current -> set-4f21…
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from podium.errors import StorageFull
from podium.identity.keys import key_pem, load_key, make_key
from podium.link.machine import CA_FILE, CERTIFICATE_FILE, CURRENT, IDENTITY_FILE, KEY_FILE, IdentityUnusable

_LOCK_FILE = ".lock"
_NEXT_KEY_FILE = "next-key.pem"
_SET = "set-"
# The one that makes the folder an identity is linked last.
_NAMES = (KEY_FILE, CERTIFICATE_FILE, CA_FILE, IDENTITY_FILE)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have the folder to oneself, making it when it is not there: two renewals at once would not know each other.

    Raises:
        IdentityUnusable: the folder cannot be made or written in.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # the kernel gives it back when its holder dies
        yield
    finally:
        os.close(descriptor)


def next_key(folder: Path) -> bytes:
    """The key for the next certificate, on disk before it is used.

    One that an interrupted attempt left is used again: with it, a server that had answered gives the same answer,
    so a token that may be used once is not lost with a connection.

    Raises:
        IdentityUnusable, StorageFull: it cannot be written or read.
    """
    path = folder / _NEXT_KEY_FILE
    try:
        if not path.exists():
            _write(path, key_pem(make_key()), mode=0o600)
            _sync(folder)
        pem = path.read_bytes()
    except OSError as error:
        raise _unusable(folder, error) from error
    load_key(pem, str(path))
    return pem


def forget_next_key(folder: Path) -> None:
    """Drop a key whose request was refused for good, so that the next attempt makes another."""
    (folder / _NEXT_KEY_FILE).unlink(missing_ok=True)


def install(folder: Path, serial: str, files: Mapping[str, bytes]) -> None:
    """Put a new set in force; the one before stays beside it until the next, for who is just reading it.

    Args:
        folder: the identity's folder, locked.
        serial: the certificate's serial number in hexadecimal.
        files: the content of every file by its name.

    Raises:
        IdentityUnusable, StorageFull: it cannot be written; the old set is in force.
    """
    fresh = folder / f"{_SET}{serial}"
    try:
        before = os.readlink(folder / CURRENT) if (folder / CURRENT).is_symlink() else ""
        if fresh.exists() and fresh.name != before:
            shutil.rmtree(fresh)  # half written by one that was killed
        fresh.mkdir(mode=0o700, exist_ok=True)
        for name in _NAMES:
            _write(fresh / name, files[name], mode=0o600 if name == KEY_FILE else 0o644)
        _sync(fresh)
        _link(folder / CURRENT, fresh.name)
        for name in _NAMES:
            if not (folder / name).is_symlink():
                _link(folder / name, f"{CURRENT}/{name}")
        _sync(folder)
        forget_next_key(folder)
        for old in folder.glob(f"{_SET}*"):
            if old.name not in (fresh.name, before):
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def _link(path: Path, target: str) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Write a whole file; it never has wider rights than `mode`, not even for a moment."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(folder: Path, error: OSError) -> IdentityUnusable | StorageFull:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no room to write in {folder}", next_step="Free space on that disk and try again.")
    return IdentityUnusable(
        f"{folder} cannot be used: {error.strerror}",
        next_step="Give a folder that this user may write in with --dir.",
        field="dir",
    )

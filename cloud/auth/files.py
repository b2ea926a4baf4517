"""Files that only their owner may read: keys and tokens in the data directory."""

import contextlib
import os
import stat
from pathlib import Path

from podium.errors import Conflict, InternalError
from tools.ledger.errors import storage_error


class SecretExposed(Conflict):
    """A file with a secret can be read or written by others than its owner."""

    code = "SECRET_EXPOSED"
    advice = "Take the rights of others away with `chmod 600 FILE`; if others could read it, replace the secret."


def read_secret(path: Path) -> bytes | None:
    """What a secret file holds; None when there is none.

    Raises:
        SecretExposed: others than its owner may read or write it.
        InternalError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SecretExposed(f"{path} can be read or written by others than its owner")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InternalError(
            f"{path} cannot be read: {error.strerror}", next_step="Put it right, or restore it from a backup."
        ) from error


def write_secret(path: Path, content: bytes) -> None:
    """Put a secret in place: whole or not at all, on disk when this returns, never readable by others.

    Raises:
        StorageFull: there is no room; what was there stays.
        InternalError: it cannot be written.
    """
    try:
        _write(path, content)
    except OSError as error:
        raise storage_error(error, path) from error


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()  # of a process that was killed; made anew, so that its rights are ours
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # a revocation that vanished with the power would be none
    finally:
        os.close(folder)

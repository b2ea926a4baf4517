"""One server a data directory: a lock that the kernel takes back when the process dies, however it dies."""

import fcntl
import os
import time
from pathlib import Path

from podium.errors import Conflict, InternalError

LOCK_FILE = "server.lock"
_TRIES = 5
_TRY_AGAIN_AFTER_S = 0.02


class DataDirectoryInUse(Conflict):
    """Another server runs on the data directory."""

    code = "DATA_DIRECTORY_IN_USE"
    advice = "Stop the other server, or give this one a directory of its own with --data."


class DataLock:
    """Holds the lock from `acquire` to `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        """Use `acquire`."""
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, data: Path) -> "DataLock":
        """Lock a data directory, making it when it is not there.

        Raises:
            DataDirectoryInUse: another process holds the lock.
            InternalError: the directory cannot be made or written.
        """
        try:
            data.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InternalError(
                f"the data directory {data} cannot be used: {error.strerror}",
                next_step="Give a directory that this user may write in with --data.",
            ) from error
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # It may only be somebody who looks whether it is locked: `is_locked`.
                time.sleep(_TRY_AGAIN_AFTER_S)
            else:
                return cls(descriptor)
        os.close(descriptor)
        raise DataDirectoryInUse(f"another server runs on the data directory {data}")

    def release(self) -> None:
        """Let others have the directory."""
        os.close(self._descriptor)


def is_locked(data: Path) -> bool:
    """Whether a server runs on a data directory."""
    try:
        descriptor = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False

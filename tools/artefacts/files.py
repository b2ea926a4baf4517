"""Files by their hash: whole or not there, whenever the process dies."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from podium.errors import InternalError, LimitExceeded, PodiumError, StorageFull
from tools.artefacts.errors import ArtefactCorrupt, ArtefactInvalid

_CHUNK_BYTES = 1 << 20
_ABANDONED_AFTER = timedelta(hours=1)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file that is in the store, fsynced."""

    sha256: str
    size_bytes: int


class ArtefactFiles:
    """A folder of files whose name is the SHA-256 of their content; several processes may add at once."""

    def __init__(self, folder: Path, *, max_bytes: int, now: datetime) -> None:
        """Make the folder if it is not there, and remove what a process that died left half written.

        Args:
            folder: where the files are.
            max_bytes: largest single file.
            now: the present moment.
        """
        self._folder = folder
        self._max_bytes = max_bytes
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(".adding-*"):
            with contextlib.suppress(FileNotFoundError):
                if now.timestamp() - leftover.stat().st_mtime > _ABANDONED_AFTER.total_seconds():
                    leftover.unlink()

    def add(self, source: Path) -> StoredFile:
        """Copy a file into the store; it is on disk when this returns.

        Raises:
            ArtefactInvalid: the source is no regular file or cannot be read.
            LimitExceeded: it is too large.
            StorageFull: there is no room.
        """
        try:
            file = source.open("rb")
        except OSError as error:
            raise ArtefactInvalid(f"{source} cannot be read: {error.strerror}", field="file") from error
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ArtefactInvalid(f"{source} is not a regular file", field="file")
            return self._write(file, source)

    def read(self, sha256: str, size_bytes: int) -> bytes:
        """The bytes stored under a hash; not hashed again here, the caller seals them.

        Raises:
            ArtefactCorrupt: not there, or of another size.
        """
        path = self.path(sha256)
        try:
            with path.open("rb") as file:
                # One byte more shows a file that grew, without reading a huge one whole.
                data = file.read(size_bytes + 1)
        except OSError as error:
            raise ArtefactCorrupt(f"the file of {sha256[:16]}... cannot be read: {error.strerror}") from error
        if len(data) != size_bytes:
            raise ArtefactCorrupt(f"the file of {sha256[:16]}... has not {size_bytes} bytes any more")
        return data

    def path(self, sha256: str) -> Path:
        """Where the file of a hash is."""
        if not _SHA256.fullmatch(sha256):
            raise ArtefactInvalid("not a SHA-256 in hexadecimal", field="sha256")
        return self._folder / sha256[:2] / sha256

    def hashes(self) -> Iterator[str]:
        """Every hash there is a file for."""
        for path in self._folder.glob("??/*"):
            if _SHA256.fullmatch(path.name):
                yield path.name

    def digest(self, sha256: str) -> StoredFile | None:
        """What the file of a hash really holds, or None if there is none."""
        try:
            with self.path(sha256).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
                return StoredFile(sha256=actual, size_bytes=file.tell())
        except FileNotFoundError:
            return None

    def _write(self, file: BinaryIO, source: Path) -> StoredFile:
        temporary = self._folder / f".adding-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with _disk_errors(self._folder):
                stored = self._copy(file, source, temporary)
                target = self.path(stored.sha256)
                target.parent.mkdir(exist_ok=True)
                # A file that is there may have been damaged since; this one was just hashed.
                temporary.replace(target)
                for folder in (target.parent, self._folder):
                    _sync(folder)
                return stored
        finally:
            temporary.unlink(missing_ok=True)

    def _copy(self, file: BinaryIO, source: Path, temporary: Path) -> StoredFile:
        digest, size = hashlib.sha256(), 0
        with temporary.open("xb") as copy:
            while chunk := file.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > self._max_bytes:
                    raise LimitExceeded(f"{source} is larger than {self._max_bytes} bytes", field="file")
                digest.update(chunk)
                copy.write(chunk)
            copy.flush()
            os.fchmod(copy.fileno(), 0o444)
            os.fsync(copy.fileno())
        if size == 0:
            raise ArtefactInvalid(f"{source} is empty", field="file")
        return StoredFile(sha256=digest.hexdigest(), size_bytes=size)


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replace a small file so that it is whole, old or new, whenever the process dies.

    Raises:
        StorageFull: there is no room.
        InternalError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with _disk_errors(path):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except PodiumError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no room left for {place}; nothing was added") from error
        raise InternalError(
            f"{place} cannot be written: {error.strerror}",
            next_step="Check that the data directory exists and that this user may write in it.",
        ) from error

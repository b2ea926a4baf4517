"""The files of a blob store. No name that a sender made up becomes a path, and no link is followed.

Layout: `DIR/ab/abcdef...` for whole blobs, `DIR/partial/SHA256.UPLOADER` for those on their way, where UPLOADER is
made from the caller's name: two callers who upload the same bytes do not notice each other.
"""

import errno
import hashlib
import io
import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.errors import DataCorrupt, InternalError, InvalidRequest, StorageFull

_LOG = logging.getLogger(__name__)
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_PARTIAL = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{32}\Z")
_FOREIGN = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ENXIO})
"""What the system says when a link, folder, pipe or socket lies where a file of ours would."""
_NO_LINKS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # not blocking: a planted pipe would be waited for


def checked_sha256(value: str, field: str) -> str:
    """The value, when it is a SHA-256 in lower-case hexadecimal.

    Raises:
        InvalidRequest: it is anything else, naming `field`.
    """
    if _SHA256.match(value) is None:
        shown = value[:80].encode("unicode_escape").decode("ascii")
        raise InvalidRequest(f"{shown!r} is not a SHA-256: 64 lower-case hexadecimal digits", field=field)
    return value


def uploader_of(caller: str) -> str:
    """What stands for a caller in the name of a partial file."""
    return hashlib.sha256(caller.encode()).hexdigest()[:32]


def partial_name(sha256: str, caller: str) -> str:
    """The file name of a caller's unfinished upload."""
    return f"{sha256}.{uploader_of(caller)}"


@contextmanager
def storage_errors() -> Iterator[None]:
    """Tell what the file system raises as errors of ours; where that was is for the log, not for callers."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("no room left for blobs; the bytes stored so far are kept") from error
        if isinstance(error, FileNotFoundError):
            raise InternalError(f"the blob store failed: {error.strerror}") from error
        _LOG.error("the blob store failed: %s", error)
        if error.errno in _FOREIGN:
            raise DataCorrupt(
                "something that is not a file of the blob store lies in its folder",
                next_step="Look in the server's log for its place, find out who put it there, and remove it.",
            ) from error
        raise InternalError(f"the blob store failed: {error.strerror}") from error


class BlobFiles:
    """The folder of one store; blocking."""

    def __init__(self, folder: Path) -> None:
        """Make the folders."""
        self._folder = folder
        self._partial = folder / "partial"
        with storage_errors():
            self._partial.mkdir(parents=True, exist_ok=True)

    def size(self, sha256: str) -> int | None:
        """The size of a whole blob; None when it is not there."""
        return _size(self._path(sha256))

    def partial_size(self, name: str) -> int:
        """How many bytes of an unfinished upload there are."""
        return _size(self._partial / name) or 0

    def open(self, sha256: str) -> io.BufferedReader:
        """A whole blob, for reading.

        Raises:
            FileNotFoundError: it is not there.
            DataCorrupt: something else lies in its place.
        """
        try:
            with storage_errors():
                folder = _open_folder(self._path(sha256).parent)
                try:
                    descriptor = os.open(sha256, os.O_RDONLY | _NO_LINKS, dir_fd=folder)
                finally:
                    os.close(folder)
                return io.BufferedReader(_regular(descriptor, "rb"))
        except InternalError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise error.__cause__ from None
            raise

    def open_partial(self, name: str) -> io.FileIO:
        """An unfinished upload, for reading and writing; made when it is not there."""
        with storage_errors():
            descriptor = os.open(self._partial / name, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o600)
            return _regular(descriptor, "r+b")

    def keep(self, name: str, sha256: str) -> None:
        """Give a checked and synced partial file its final name; the name is on disk when this returns."""
        final = self._path(sha256)
        with storage_errors():
            made = not final.parent.exists()
            final.parent.mkdir(exist_ok=True)
            folder = _open_folder(final.parent)
            try:
                os.replace(self._partial / name, sha256, dst_dir_fd=folder)
                # The name is on disk only when its folder is; before that a power cut may take it away again.
                os.fsync(folder)
            finally:
                os.close(folder)
            if made:
                _sync_folder(self._folder)

    def remove(self, sha256: str) -> None:
        """Remove a whole blob; who reads it reads on."""
        with storage_errors():
            self._path(sha256).unlink(missing_ok=True)

    def remove_partial(self, name: str) -> None:
        """Remove an unfinished upload."""
        with storage_errors():
            (self._partial / name).unlink(missing_ok=True)

    def truncate_partial(self, name: str, size_bytes: int) -> int:
        """Cut an unfinished upload to what is known to be on disk; its size then."""
        with self.open_partial(name) as file, storage_errors():
            kept = min(size_bytes, os.fstat(file.fileno()).st_size)
            file.truncate(kept)
            os.fsync(file.fileno())
        return kept

    def blobs(self) -> Iterator[tuple[str, int]]:
        """The whole blobs with their sizes; what is no blob is left out."""
        for path in self._folder.glob("??/*"):
            if _SHA256.match(path.name) and path.name[:2] == path.parent.name:
                size_bytes = _size(path)
                if size_bytes is not None:
                    yield path.name, size_bytes

    def partials(self) -> Iterator[tuple[str, int, float]]:
        """The unfinished uploads: names, sizes, and when they were last written to, in seconds of the epoch."""
        for path in list(self._partial.iterdir()):
            status = path.stat(follow_symlinks=False)
            if _PARTIAL.match(path.name) and stat.S_ISREG(status.st_mode):
                yield path.name, status.st_size, status.st_mtime

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def _size(path: Path) -> int | None:
    """The size of a regular file that no link leads to or past."""
    try:
        status = path.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or path.parent.is_symlink():
            return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_size


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _regular(descriptor: int, mode: str) -> io.FileIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "not a regular file")
    return io.FileIO(descriptor, mode)


def _sync_folder(folder: Path) -> None:
    descriptor = _open_folder(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

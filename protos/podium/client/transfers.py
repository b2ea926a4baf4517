"""How bytes go up and come down over lines that break: chunks with checksums, going on, and when to give up."""

import hashlib
import os
import random
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from podium.errors import DataCorrupt, InvalidRequest, PodiumError, ServerUnavailable, TimeLimitExceeded
from podium.link.reconnecting import Backoff
from podium.v1 import blob_pb2

CHUNK_BYTES: Final = 256 * 1024
MAX_FAILURES: Final = 12
"""Attempts in a row that moved no byte; with the waits between them about 15 s, and a server restarts in less."""
_BACKOFF = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=5))
_TRIED_AGAIN = frozenset({"UPLOAD_INCOMPLETE", "UPLOAD_OFFSET_WRONG", "UPLOAD_SUPERSEDED", "CHUNK_DAMAGED"})
_HASH_MISMATCH = "HASH_MISMATCH"
_ON_THE_WAY = "data"
"""Field of a chunk at fault: the next attempt may bring it whole."""

Progress = Callable[[int, int], None]
"""Told how many bytes have gone or come, and of how many (0: not known). May go back after a break."""
ReadAt = Callable[[int, int], bytes]
"""(offset, size) to that many bytes, fewer at the end. Not a file's read: an attempt that was given up may still
read on a thread of gRPC while the next one does."""


class BlobDamaged(DataCorrupt):
    """What was downloaded is not what the hash names."""

    code = "BLOB_DAMAGED"
    advice = "Download it again; if it stays so, the server's disk may be damaged: ask the operator."


def file_reader(file: FileIO) -> ReadAt:
    """Reads an open file at any place."""
    return lambda offset_bytes, size_bytes: os.pread(file.fileno(), size_bytes, offset_bytes)


def bytes_reader(data: bytes) -> ReadAt:
    """Reads bytes in memory at any place."""
    return lambda offset_bytes, size_bytes: data[offset_bytes : offset_bytes + size_bytes]


def _broken_on_the_way(error: PodiumError) -> bool:
    return isinstance(error, BlobDamaged) and error.field == _ON_THE_WAY


class Patience:
    """Decides after a failure whether to go on, and how long to wait before."""

    def __init__(self, jitter: random.Random, *, connected: bool = True, reached_bytes: int = 0) -> None:
        """Begin with patience unused.

        Args:
            jitter: spreads the attempts.
            connected: whether the server was there before; one that never was is not waited for.
            reached_bytes: how many bytes are where they belong already.
        """
        self._jitter = jitter
        self._connected = connected
        self._failures = 0
        self._reached_bytes = reached_bytes
        self._mismatched = False

    def wait_s(self, error: PodiumError) -> float:
        """Seconds to wait before the next attempt.

        Raises:
            PodiumError: `error`, when another attempt has no use or too many moved no byte.
        """
        if error.code == _HASH_MISMATCH and not self._mismatched:
            # The server may have kept damaged bytes from an earlier attempt; it has dropped them now.
            self._mismatched, self._reached_bytes = True, 0
        elif isinstance(error, ServerUnavailable):
            if not self._connected:
                raise error
        elif not (isinstance(error, TimeLimitExceeded) or error.code in _TRIED_AGAIN or _broken_on_the_way(error)):
            raise error
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            raise error
        return _BACKOFF.delay(self._failures, self._jitter).total_seconds()

    def reached(self, offset_bytes: int) -> None:
        """So many bytes are where they belong."""
        if offset_bytes > self._reached_bytes:
            self._failures, self._reached_bytes, self._connected = 0, offset_bytes, True


class Sending:
    """One attempt of an upload."""

    def __init__(
        self, read_at: ReadAt, blob: blob_pb2.BlobRef, offset_bytes: int, progress: Progress | None
    ) -> None:
        self._read_at = read_at
        self._blob = blob
        self._offset_bytes = offset_bytes
        self._progress = progress
        self._stopped = False

    def stop(self) -> None:
        """The attempt is over: tell nobody of what gRPC's thread may still read."""
        self._stopped = True

    def requests(self) -> Iterator[blob_pb2.UploadRequest]:
        """The messages; the first names the blob, and there always is one.

        An upload of which only the end was lost, and an empty file, must be told to the server too.
        """
        offset_bytes = self._offset_bytes
        named: blob_pb2.BlobRef | None = self._blob
        while not self._stopped:
            size_bytes = max(0, min(CHUNK_BYTES, self._blob.size_bytes - offset_bytes))
            data = self._read_at(offset_bytes, size_bytes) if size_bytes else b""
            if not data and named is None:
                return
            if self._progress is not None and not self._stopped:
                self._progress(offset_bytes, self._blob.size_bytes)
            yield blob_pb2.UploadRequest(blob=named, offset_bytes=offset_bytes, data=data, crc32=zlib.crc32(data))
            named = None
            offset_bytes += len(data)


class Received:
    """A download as it grows, checked chunk by chunk and, if it begins at 0, as a whole."""

    def __init__(self, sha256: str, offset_bytes: int = 0, *, size_bytes: int | None = None) -> None:
        self._sha256 = sha256
        self._size_bytes = size_bytes
        self._digest = hashlib.sha256()
        self._whole = offset_bytes == 0
        self.offset_bytes = offset_bytes
        """Where the next chunk must begin."""

    def begins_with(self, data: bytes) -> None:
        """Count bytes that are here from an earlier attempt."""
        self._digest.update(data)
        self.offset_bytes += len(data)

    def request(self) -> blob_pb2.DownloadRequest:
        """Asks for the rest."""
        return blob_pb2.DownloadRequest(sha256=self._sha256, offset_bytes=self.offset_bytes)

    def take(self, response: blob_pb2.DownloadResponse) -> bytes:
        """The data of the next chunk.

        Raises:
            BlobDamaged: it was damaged on the way or is not the next one.
        """
        if response.offset_bytes != self.offset_bytes:
            raise BlobDamaged(
                f"a chunk begins at {response.offset_bytes}, not at {self.offset_bytes}", field=_ON_THE_WAY
            )
        if response.HasField("crc32") and zlib.crc32(response.data) != response.crc32:
            raise BlobDamaged(f"the chunk at {response.offset_bytes} arrived damaged", field=_ON_THE_WAY)
        if self._size_bytes is not None and self.offset_bytes + len(response.data) > self._size_bytes:
            raise BlobDamaged(f"more bytes came than the {self._size_bytes} that the blob has")
        self._digest.update(response.data)
        self.offset_bytes += len(response.data)
        return response.data

    def check_whole(self) -> None:
        """Check all bytes, once there are no more.

        Raises:
            BlobDamaged: they are not those that the hash names.
        """
        if self._size_bytes is not None and self.offset_bytes != self._size_bytes:
            raise BlobDamaged(f"{self.offset_bytes} bytes came, and the blob has {self._size_bytes}")
        if self._whole and self._digest.hexdigest() != self._sha256:
            raise BlobDamaged(f"the bytes that came do not have the SHA-256 {self._sha256}")


class PartFile:
    """What has been downloaded so far, beside the file it will be; a context manager. Blocking."""

    def __init__(self, path: Path, sha256: str) -> None:
        """Go on with what an earlier download left.

        Args:
            path: the file that it becomes once all bytes are there and checked.
            sha256: of the blob; part of the name, so that two blobs do not mix.

        Raises:
            InvalidRequest: the place cannot be written.
        """
        self._path = path
        self._sha256 = sha256
        self._part = path.with_name(f"{path.name}.{sha256[:16]}.part")
        try:
            descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unwritable(self._part, error) from error
        self._file = FileIO(descriptor, "r+b")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def begun(self, size_bytes: int | None) -> Received:
        """The download with what is here already."""
        received = Received(self._sha256, size_bytes=size_bytes)
        self._file.seek(0)
        while data := self._file.read(CHUNK_BYTES):
            received.begins_with(data)
        return received

    def write(self, data: bytes) -> None:
        """Keep the next bytes."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _unwritable(self._part, error) from error

    def restart(self) -> None:
        """Drop all."""
        self._file.truncate(0)
        self._file.seek(0)

    def finish(self) -> None:
        """Press the checked bytes to disk and give them their name."""
        try:
            os.fsync(self._file.fileno())
            self._part.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise _unwritable(self._path, error) from error


def _unwritable(path: Path, error: OSError) -> InvalidRequest:
    return InvalidRequest(
        f"{path} cannot be written: {error.strerror}",
        next_step="Make room or choose another place, and repeat the call: it goes on with what has come.",
        field="path",
    )

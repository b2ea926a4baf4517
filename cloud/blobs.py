"""Content-addressed bytes on disk: uploads that can go on where they broke off, hashes checked before they count.

Layout: `DIR/ab/abcdef...` for whole blobs, `DIR/partial/abcdef...` for those on their way. A name is always a
checked SHA-256, never something a sender made up, so no path can leave the folder.
"""

import asyncio
import errno
import hashlib
import io
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from podium.errors import (
    Conflict,
    DataCorrupt,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    PodiumError,
    StorageFull,
)

CHUNK_BYTES = 256 * 1024
"""Largest piece of an upload, and the size of a download's pieces."""

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_ABANDONED_AFTER = timedelta(days=1)


class UploadOffsetWrong(Conflict):
    """A chunk does not start where the stored bytes end."""

    code = "UPLOAD_OFFSET_WRONG"
    advice = "Call Stat and send the bytes from committed_bytes on."


class UploadSuperseded(Conflict):
    """Another upload of the same blob has taken over."""

    code = "UPLOAD_SUPERSEDED"
    advice = "Call Stat: the other upload may have finished; otherwise go on from committed_bytes."


class UploadIncomplete(InvalidRequest):
    """The stream of chunks ended early."""

    code = "UPLOAD_INCOMPLETE"
    advice = "Call Stat and send the bytes from committed_bytes on."


class HashMismatch(DataCorrupt):
    """The uploaded bytes are not those that the hash names."""

    code = "HASH_MISMATCH"
    advice = "Compute the SHA-256 anew and send the whole file again from offset 0."


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobState:
    """How much of a blob is stored."""

    committed_bytes: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobLimits:
    """What senders may store."""

    blob_bytes: int
    """Of one blob."""
    all_bytes: int
    """Of all blobs together, unfinished ones counted at their full size."""


class BlobStore:
    """The blobs of one data directory; used by one process at a time."""

    def __init__(self, folder: Path, limits: BlobLimits, *, now: datetime) -> None:
        """Open the store, making its folder; unfinished uploads that nobody touched for a day are removed."""
        self._folder = folder
        self._partial = folder / "partial"
        self._limits = limits
        self._partial.mkdir(parents=True, exist_ok=True)
        self._reserved: dict[str, int] = {}
        """Bytes that unfinished uploads have or may still fill, by hash."""
        self._owners: dict[str, Upload] = {}
        self._lock = threading.Lock()
        for path in self._partial.iterdir():
            status = path.stat()
            if now.timestamp() - status.st_mtime > _ABANDONED_AFTER.total_seconds():
                path.unlink()
            else:
                self._reserved[path.name] = status.st_size
        self._stored_bytes = sum(path.stat().st_size for path in folder.glob("??/*"))

    async def state(self, sha256: str) -> BlobState:
        """How much of a blob is stored; 0 bytes when nothing is.

        Raises:
            InvalidRequest: not a SHA-256.
        """
        return await asyncio.to_thread(self._state, checked_sha256(sha256, "sha256"))

    async def start(self, sha256: str, size_bytes: int) -> "Upload":
        """Begin an upload or go on with one; it takes over from any other upload of the same blob.

        Raises:
            InvalidRequest: not a SHA-256, or an empty blob.
            LimitExceeded: too large, alone or together with what is stored.
        """
        checked_sha256(sha256, "blob.sha256")
        if size_bytes == 0:
            raise InvalidRequest("an empty file cannot be stored", field="blob.size_bytes")
        if size_bytes > self._limits.blob_bytes:
            raise LimitExceeded(
                f"{size_bytes} bytes are more than the {self._limits.blob_bytes} a blob may have",
                next_step="Send a smaller file, or ask the operator to raise blob_max_bytes.",
                field="blob.size_bytes",
            )
        return await asyncio.to_thread(self._start, sha256, size_bytes)

    async def read(self, sha256: str, *, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """A whole blob's bytes from an offset in pieces of `CHUNK_BYTES`; read from 0, its hash is checked again.

        Raises:
            InvalidRequest: not a SHA-256, or an offset past the end.
            NotFound: there is no such blob, or it is not whole yet.
            DataCorrupt: what is on the disk is not what was stored; raised after the last piece.
        """
        path = self._path(checked_sha256(sha256, "sha256"))
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no blob {sha256}", next_step="Upload it first, or check the hash."
            ) from error
        with file:
            size_bytes = os.fstat(file.fileno()).st_size
            if offset_bytes > size_bytes:
                raise InvalidRequest(
                    f"offset {offset_bytes} is past the end at {size_bytes}", field="offset_bytes"
                )
            file.seek(offset_bytes)
            digest = hashlib.sha256()
            while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
                digest.update(piece)
                yield piece
        if offset_bytes == 0 and digest.hexdigest() != sha256:
            raise DataCorrupt(f"blob {sha256} has changed on the disk since it was stored")

    def _state(self, sha256: str) -> BlobState:
        for path, complete in ((self._path(sha256), True), (self._partial / sha256, False)):
            try:
                return BlobState(committed_bytes=path.stat().st_size, complete=complete)
            except FileNotFoundError:
                continue
        return BlobState(committed_bytes=0, complete=False)

    def _start(self, sha256: str, size_bytes: int) -> "Upload":
        while True:
            with self._lock:
                owner = self._owners.get(sha256)
                if owner is None:
                    return self._new_upload(sha256, size_bytes)
            # The older stream is most likely dead and does not know it yet: its device came back elsewhere.
            owner.supersede()

    def _new_upload(self, sha256: str, size_bytes: int) -> "Upload":
        state = self._state(sha256)
        if state.complete:
            return Upload(self, sha256, size_bytes, file=None)
        others = sum(size for name, size in self._reserved.items() if name != sha256)
        if self._stored_bytes + others + size_bytes > self._limits.all_bytes:
            raise LimitExceeded(
                f"all blobs together may have {self._limits.all_bytes} bytes; {size_bytes} more do not fit",
                next_step="Ask the operator to remove old blobs or to raise blobs_max_bytes.",
                field="blob.size_bytes",
            )
        with _storage_errors():
            file = (self._partial / sha256).open("a+b", buffering=0)
        self._reserved[sha256] = size_bytes
        self._owners[sha256] = upload = Upload(self, sha256, size_bytes, file=file)
        return upload

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _let_go(self, upload: "Upload", left_bytes: int) -> None:
        """An upload ended with so many bytes left in its partial file; they count until they are removed."""
        with self._lock:
            del self._owners[upload.sha256]
            self._reserved[upload.sha256] = left_bytes
            if left_bytes == 0:
                del self._reserved[upload.sha256]

    def _keep(self, upload: "Upload") -> None:
        """Give a checked and synced partial file its final name."""
        final = self._path(upload.sha256)
        final.parent.mkdir(exist_ok=True)
        (self._partial / upload.sha256).rename(final)
        # The name is on disk only when its folder is; before that a power cut may take the blob away again.
        _sync_folder(final.parent)
        _sync_folder(self._folder)
        with self._lock:
            self._stored_bytes += upload.size_bytes


class Upload:
    """One upload on its way; `write` in order, then `finish`, and always `close`."""

    def __init__(self, store: BlobStore, sha256: str, size_bytes: int, *, file: io.FileIO | None) -> None:
        """Use `BlobStore.start`; `file` is None when the blob is stored already."""
        self.sha256 = sha256
        self.size_bytes = size_bytes
        self.complete = file is None
        """True when the blob is stored and nothing (more) needs to be sent."""
        self._store = store
        self._file = file
        self._offset_bytes = 0
        self._digest = hashlib.sha256()
        self._busy = threading.Lock()
        """Held while the file is worked on, so that a second upload starts from a settled file."""
        if file is not None:
            file.seek(0)
            while piece := file.read(CHUNK_BYTES):
                self._digest.update(piece)
                self._offset_bytes += len(piece)

    async def write(self, offset_bytes: int, data: bytes) -> None:
        """Store the next piece.

        Raises:
            UploadOffsetWrong: it does not start where the stored bytes end.
            UploadSuperseded: another upload of this blob has begun since.
            InvalidRequest: more bytes than were announced.
            StorageFull: the disk is full; what was stored stays.
        """
        await asyncio.to_thread(self._write, offset_bytes, data)

    async def finish(self) -> None:
        """Check the hash, press the bytes to disk, and give the blob its name.

        Raises:
            UploadIncomplete: fewer bytes than were announced; those stay for the next attempt.
            HashMismatch: the bytes are not those the hash names; they are removed.
            UploadSuperseded: another upload of this blob has begun since.
        """
        await asyncio.to_thread(self._finish)

    async def close(self) -> None:
        """Let go of the file; what was written stays for the next attempt."""
        await asyncio.to_thread(self.supersede)

    def supersede(self) -> None:
        """Wait for a running write, then take no more; blocks."""
        with self._busy:
            self._end(left_bytes=self._offset_bytes)

    def _write(self, offset_bytes: int, data: bytes) -> None:
        with self._busy:
            file = self._open_file()
            if offset_bytes != self._offset_bytes:
                raise UploadOffsetWrong(
                    f"the chunk starts at {offset_bytes}, and {self._offset_bytes} bytes are stored",
                    field="offset_bytes",
                )
            if offset_bytes + len(data) > self.size_bytes:
                raise InvalidRequest(f"more bytes than the {self.size_bytes} that were announced", field="data")
            try:
                with _storage_errors():
                    rest = memoryview(data)
                    while rest:
                        rest = rest[file.write(rest) :]
            except PodiumError:
                file.truncate(self._offset_bytes)  # half a chunk would spoil the next attempt
                raise
            self._digest.update(data)
            self._offset_bytes += len(data)

    def _finish(self) -> None:
        with self._busy:
            if self.complete:
                return
            file = self._open_file()
            if self._offset_bytes != self.size_bytes:
                raise UploadIncomplete(
                    f"the upload ended after {self._offset_bytes} of {self.size_bytes} bytes",
                    field="blob.size_bytes",
                )
            if self._digest.hexdigest() != self.sha256:
                with _storage_errors():
                    file.truncate(0)
                self._end(left_bytes=0)
                raise HashMismatch(f"the bytes that were sent do not have the SHA-256 {self.sha256}")
            with _storage_errors():
                os.fsync(file.fileno())
                self._store._keep(self)
            self.complete = True
            self._end(left_bytes=0)

    def _open_file(self) -> io.FileIO:
        if self._file is None:
            raise UploadSuperseded(f"another upload of {self.sha256} has begun since")
        return self._file

    def _end(self, *, left_bytes: int) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._store._let_go(self, left_bytes)


def checked_sha256(value: str, field: str) -> str:
    """The value, when it is a SHA-256 in lower-case hexadecimal.

    Raises:
        InvalidRequest: it is anything else, naming `field`.
    """
    if _SHA256.match(value) is None:
        shown = value[:80].encode("unicode_escape").decode("ascii")
        raise InvalidRequest(f"{shown!r} is not a SHA-256: 64 lower-case hexadecimal digits", field=field)
    return value


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("no room left for blobs; the bytes stored so far are kept") from error
        raise InternalError(f"the blob store failed: {error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""One upload on its way: pieces in order, the hash as it grows, and pressed to disk now and then."""

import asyncio
import hashlib
import io
import os
import threading
from typing import TYPE_CHECKING, Any

from cloud.blobs.errors import HashMismatch, UploadIncomplete, UploadOffsetWrong, UploadSuperseded
from cloud.blobs.files import storage_errors
from podium.errors import InvalidRequest, PodiumError

if TYPE_CHECKING:
    from cloud.blobs.store import BlobStore

CHUNK_BYTES = 256 * 1024
"""Largest piece of an upload, and the size of a download's pieces."""
SYNC_BYTES = 16 * 2**20
"""Written bytes after which they are pressed to disk: what a power cut may take from an upload at most."""


class Upload:
    """One upload on its way; `write` in order, then `finish`, and always `close`."""

    def __init__(
        self,
        store: "BlobStore",
        name: str,
        *,
        sha256: str,
        size_bytes: int,
        media: str,
        caller: str,
        file: io.FileIO | None,
    ) -> None:
        """Use `BlobStore.start`; `file` is None when the blob is stored already."""
        self.name = name
        self.sha256 = sha256
        self.size_bytes = size_bytes
        self.media = media
        self.caller = caller
        self.complete = file is None
        """True when the blob is stored and nothing (more) needs to be sent."""
        self._store = store
        self._file = file
        self._offset_bytes = 0
        self._synced_bytes = 0
        self._digest = hashlib.sha256()
        self._busy = threading.Lock()
        """Held while the file is worked on, so that a second upload starts from a settled file."""

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

    def catch_up(self, known: "tuple[int, Any] | None") -> None:
        """Go on from what an earlier upload left.

        Args:
            known: how many bytes were hashed, and the hash over them, where that is still known; without it the
                file is read once more.
        """
        with self._busy:
            file = self._open_file()
            with storage_errors():
                left_bytes = os.fstat(file.fileno()).st_size
                if left_bytes > self.size_bytes:
                    # A lie about the size, then or now: only the bytes of the hash can end this.
                    file.truncate(0)
                    left_bytes = 0
                if known is not None and known[0] == left_bytes:
                    self._digest = known[1]
                else:
                    file.seek(0)
                    while piece := file.read(CHUNK_BYTES):
                        self._digest.update(piece)
                file.seek(left_bytes)
            self._offset_bytes = self._synced_bytes = left_bytes

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
                with storage_errors():
                    rest = memoryview(data)
                    while rest:
                        rest = rest[file.write(rest) :]
            except PodiumError:
                # Half a chunk would spoil the next attempt.
                file.truncate(self._offset_bytes)
                file.seek(self._offset_bytes)
                raise
            self._digest.update(data)
            self._offset_bytes += len(data)
            if self._offset_bytes - self._synced_bytes >= SYNC_BYTES:
                self._sync(file)

    def _sync(self, file: io.FileIO) -> None:
        with storage_errors():
            os.fsync(file.fileno())
        self._store.note_synced(self, self._offset_bytes)
        self._synced_bytes = self._offset_bytes

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
                self._end(left_bytes=0)
                raise HashMismatch(f"the bytes that were sent do not have the SHA-256 {self.sha256}")
            with storage_errors():
                os.fsync(file.fileno())
            self._store.keep(self)
            self.complete = True
            self._end(left_bytes=0)

    def _open_file(self) -> io.FileIO:
        if self._file is None:
            raise UploadSuperseded(f"another upload of {self.sha256} has begun since")
        return self._file

    def _end(self, *, left_bytes: int) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if left_bytes > self._synced_bytes:
                self._sync_left(file, left_bytes)
        finally:
            file.close()
            self._store.let_go(self, left_bytes, self._digest)

    def _sync_left(self, file: io.FileIO, left_bytes: int) -> None:
        with storage_errors():
            os.fsync(file.fileno())
        self._store.note_synced(self, left_bytes)

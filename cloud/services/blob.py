"""`BlobService`: stores and serves content-addressed bytes."""

import asyncio
import re
import unicodedata
import zlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import grpc

from cloud.auth.principal import current_principal
from cloud.blobs.errors import ChunkDamaged, UploadTooSlow
from cloud.blobs.garbage import GarbageCollector
from cloud.blobs.store import BlobStore
from cloud.blobs.uploads import CHUNK_BYTES
from cloud.services.fields import checked_text
from podium.errors import InvalidRequest
from podium.v1 import blob_pb2, blob_pb2_grpc

MAX_FILE_NAME_CHARACTERS = 255
MAX_MEDIA_TYPE_CHARACTERS = 127
LEAST_PROGRESS_BYTES = 64 * 1024
"""What must come of an upload within its idle limit: 220 bytes a second by default."""
_MEDIA_TYPE = re.compile(
    r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*(\s*;\s*[\w!#$&^.+-]+=[\w \".+-]+)*\Z", re.I | re.A
)

Context = grpc.aio.ServicerContext[Any, Any]


class BlobService(blob_pb2_grpc.BlobServiceServicer):
    """See `podium/v1/blob.proto`."""

    def __init__(self, store: BlobStore, garbage: GarbageCollector, *, idle_limit: timedelta) -> None:
        """Serve a store.

        Args:
            store: the blobs.
            garbage: removes those that nothing refers to.
            idle_limit: an upload of which hardly anything comes within it ends.
        """
        self._store = store
        self._garbage = garbage
        self._idle_limit = idle_limit

    async def Stat(self, request: blob_pb2.StatRequest, context: Context) -> blob_pb2.StatResponse:  # noqa: N802 - gRPC's name
        """How much of a blob is stored, as far as the caller may know."""
        state = await self._store.state(request.sha256, current_principal())
        return blob_pb2.StatResponse(committed_bytes=state.committed_bytes, complete=state.complete)

    async def Upload(  # noqa: N802 - gRPC's name
        self, request_iterator: AsyncIterator[blob_pb2.UploadRequest], context: Context
    ) -> blob_pb2.UploadResponse:
        """Store a blob sent in chunks; one that is the caller's already is confirmed without reading on."""
        chunks = _Chunks(request_iterator, self._idle_limit, clock_s=asyncio.get_running_loop().time)
        first = await chunks.next()
        if first is None or not first.HasField("blob"):
            raise InvalidRequest("the first chunk must say which blob is uploaded", field="blob")
        blob = first.blob
        checked_blob_labels(blob, "blob")
        upload = await self._store.start(blob.sha256, blob.size_bytes, current_principal(), media=blob.media_type)
        try:
            chunk: blob_pb2.UploadRequest | None = first
            while chunk is not None and not upload.complete:
                _check_chunk(chunk)
                await upload.write(chunk.offset_bytes, chunk.data)
                chunk = await chunks.next()
            await upload.finish()
        finally:
            await upload.close()
        return blob_pb2.UploadResponse(blob=blob)

    async def Download(  # noqa: N802 - gRPC's name
        self, request: blob_pb2.DownloadRequest, context: Context
    ) -> AsyncIterator[blob_pb2.DownloadResponse]:
        """A blob's bytes from an offset."""
        await self._store.check_readable(request.sha256, current_principal())
        offset_bytes = request.offset_bytes
        async for piece in self._store.read(request.sha256, offset_bytes=offset_bytes):
            yield blob_pb2.DownloadResponse(offset_bytes=offset_bytes, data=piece, crc32=zlib.crc32(piece))
            offset_bytes += len(piece)

    async def CollectGarbage(  # noqa: N802 - gRPC's name
        self, request: blob_pb2.CollectGarbageRequest, context: Context
    ) -> blob_pb2.CollectGarbageResponse:
        """Remove blobs that nothing refers to, or say how much that would be."""
        collected = await self._garbage.collect(dry_run=request.dry_run)
        return blob_pb2.CollectGarbageResponse(
            removed_count=collected.removed.count,
            removed_bytes=collected.removed.total_bytes,
            kept_count=collected.kept.count,
            kept_bytes=collected.kept.total_bytes,
        )


class _Chunks:
    """The chunks of an upload, as long as enough of them come."""

    def __init__(
        self,
        requests: AsyncIterator[blob_pb2.UploadRequest],
        limit: timedelta,
        *,
        clock_s: Callable[[], float],
    ) -> None:
        self._requests = requests
        self._limit_s = limit.total_seconds()
        self._clock_s = clock_s
        self._ends_s = clock_s() + self._limit_s
        self._came_bytes = 0

    async def next(self) -> blob_pb2.UploadRequest | None:
        """The next chunk; None after the last."""
        try:
            async with asyncio.timeout_at(self._ends_s):
                chunk = await anext(self._requests, None)
        except TimeoutError as error:
            raise UploadTooSlow(
                f"fewer than {LEAST_PROGRESS_BYTES} bytes came within {self._limit_s:g} s"
            ) from error
        if chunk is not None:
            self._came_bytes += len(chunk.data)
            if self._came_bytes >= LEAST_PROGRESS_BYTES:
                self._came_bytes = 0
                self._ends_s = self._clock_s() + self._limit_s
        return chunk


def _check_chunk(chunk: blob_pb2.UploadRequest) -> None:
    if len(chunk.data) > CHUNK_BYTES:
        raise InvalidRequest(f"a chunk may have {CHUNK_BYTES} bytes", field="data")
    if chunk.HasField("crc32") and zlib.crc32(chunk.data) != chunk.crc32:
        raise ChunkDamaged(f"the chunk at {chunk.offset_bytes} arrived damaged", field="crc32")


def checked_blob_labels(blob: blob_pb2.BlobRef, field: str) -> None:
    """Check what a reference says about a blob besides its hash and length.

    A file name is never used as a path here, but whoever downloads the blob may use it so, and people read it.

    Raises:
        InvalidRequest: the name is none of one file (a path, control characters, marks that turn the direction of
            writing), the media type is none, or either is too long.
    """
    name = checked_text(blob.file_name, f"{field}.file_name", max_characters=MAX_FILE_NAME_CHARACTERS)
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InvalidRequest("a file name must not be a path", field=f"{field}.file_name")
    if any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for character in name):
        raise InvalidRequest(
            "a file name must not hold control characters or invisible marks",
            next_step="Rename the file, or send it without a name.",
            field=f"{field}.file_name",
        )
    media = checked_text(blob.media_type, f"{field}.media_type", max_characters=MAX_MEDIA_TYPE_CHARACTERS)
    if media and _MEDIA_TYPE.match(media) is None:
        raise InvalidRequest("a media type has the form type/subtype", field=f"{field}.media_type")

"""`BlobService`: stores and serves content-addressed bytes."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from cloud.blobs import CHUNK_BYTES, BlobStore
from cloud.services.fields import checked_text
from podium.errors import InvalidRequest
from podium.v1 import blob_pb2, blob_pb2_grpc

MAX_FILE_NAME_CHARACTERS = 255
MAX_MEDIA_TYPE_CHARACTERS = 127

Context = grpc.aio.ServicerContext[Any, Any]


class BlobService(blob_pb2_grpc.BlobServiceServicer):
    """See `podium/v1/blob.proto`."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    async def Stat(self, request: blob_pb2.StatRequest, context: Context) -> blob_pb2.StatResponse:  # noqa: N802 - gRPC's name
        """How much of a blob is stored."""
        state = await self._store.state(request.sha256)
        return blob_pb2.StatResponse(committed_bytes=state.committed_bytes, complete=state.complete)

    async def Upload(  # noqa: N802 - gRPC's name
        self, request_iterator: AsyncIterator[blob_pb2.UploadRequest], context: Context
    ) -> blob_pb2.UploadResponse:
        """Store a blob sent in chunks; a stored blob is confirmed without reading on."""
        first = await anext(request_iterator, None)
        if first is None or not first.HasField("blob"):
            raise InvalidRequest("the first chunk must say which blob is uploaded", field="blob")
        checked_blob_labels(first.blob, "blob")
        upload = await self._store.start(first.blob.sha256, first.blob.size_bytes)
        try:
            chunk: blob_pb2.UploadRequest | None = first
            while chunk is not None and not upload.complete:
                if len(chunk.data) > CHUNK_BYTES:
                    raise InvalidRequest(f"a chunk may have {CHUNK_BYTES} bytes", field="data")
                await upload.write(chunk.offset_bytes, chunk.data)
                chunk = await anext(request_iterator, None)
            await upload.finish()
        finally:
            await upload.close()
        return blob_pb2.UploadResponse(blob=first.blob)

    async def Download(  # noqa: N802 - gRPC's name
        self, request: blob_pb2.DownloadRequest, context: Context
    ) -> AsyncIterator[blob_pb2.DownloadResponse]:
        """A blob's bytes from an offset."""
        offset_bytes = request.offset_bytes
        async for piece in self._store.read(request.sha256, offset_bytes=offset_bytes):
            yield blob_pb2.DownloadResponse(offset_bytes=offset_bytes, data=piece)
            offset_bytes += len(piece)


def checked_blob_labels(blob: blob_pb2.BlobRef, field: str) -> None:
    """Check what a reference says about a blob besides its hash and length.

    Raises:
        InvalidRequest: a text is too long or holds NUL.
    """
    checked_text(blob.file_name, f"{field}.file_name", max_characters=MAX_FILE_NAME_CHARACTERS)
    checked_text(blob.media_type, f"{field}.media_type", max_characters=MAX_MEDIA_TYPE_CHARACTERS)

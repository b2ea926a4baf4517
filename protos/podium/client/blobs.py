"""What both clients offer about blobs: up and down, going on by themselves after a break, and garbage."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING

from podium.client.messages import blob_of, blob_of_bytes, typed_errors
from podium.client.transfers import (
    BlobDamaged,
    PartFile,
    Patience,
    Progress,
    ReadAt,
    Received,
    Sending,
    bytes_reader,
    file_reader,
)
from podium.errors import InvalidRequest, PodiumError
from podium.link import Address
from podium.v1 import blob_pb2

if TYPE_CHECKING:
    from podium.v1 import blob_pb2_grpc

_JITTER = random.Random()  # noqa: S311 - spreads attempts, guards nothing


class BlobCalls:
    """The calls about blobs, blocking; part of `podium.client.Client`."""

    _address: Address
    _deadline_s: float
    _blobs: "blob_pb2_grpc.BlobServiceStub"

    def upload(self, path: Path, *, progress: Progress | None = None) -> blob_pb2.BlobRef:
        """Store a file and return the reference to submit with.

        Goes on by itself where the connection breaks, and where an earlier upload broke off.

        Args:
            path: the file.
            progress: told bytes sent and bytes in all, on a thread of gRPC.

        Raises:
            ServerUnavailable: the server cannot be reached, or too many attempts in a row moved no byte.
            LimitExceeded: the blob is too large, or a quota is used up.
        """
        blob = blob_of(path)
        with path.open("rb", buffering=0) as file:
            return self._upload(file_reader(file), blob, progress)

    def upload_bytes(
        self, data: bytes, *, media_type: str, file_name: str = "", progress: Progress | None = None
    ) -> blob_pb2.BlobRef:
        """Store bytes from memory, as `upload` does."""
        blob = blob_of_bytes(data, media_type=media_type, file_name=file_name)
        return self._upload(bytes_reader(data), blob, progress)

    def _upload(self, read_at: ReadAt, blob: blob_pb2.BlobRef, progress: Progress | None) -> blob_pb2.BlobRef:
        patience = Patience(_JITTER)
        committed = self._committed(blob)
        while committed is not None:
            sending = Sending(read_at, blob, committed, progress)
            try:
                with typed_errors(self._address):
                    self._blobs.Upload(sending.requests(), timeout=10 * self._deadline_s)
                break
            except PodiumError as error:
                sending.stop()
                committed = self._committed_after(error, blob, patience)
        if progress is not None:
            progress(blob.size_bytes, blob.size_bytes)
        return blob

    def _committed(self, blob: blob_pb2.BlobRef) -> int | None:
        """How many bytes the server has; None when it has the whole blob."""
        with typed_errors(self._address):
            state = self._blobs.Stat(blob_pb2.StatRequest(sha256=blob.sha256), timeout=self._deadline_s)
        return None if state.complete else state.committed_bytes

    def _committed_after(self, error: PodiumError, blob: blob_pb2.BlobRef, patience: Patience) -> int | None:
        while True:
            time.sleep(patience.wait_s(error))
            try:
                committed = self._committed(blob)
            except PodiumError as failure:
                error = failure
            else:
                patience.reached(committed or 0)
                return committed

    def download(self, sha256: str, *, offset_bytes: int = 0) -> Iterator[bytes]:
        """A blob's bytes from an offset, in chunks; goes on by itself where the connection breaks.

        Raises:
            NotFound: there is no such blob, or it is another's.
            BlobDamaged: read from 0, the bytes are not those of the hash; raised after the last chunk.
        """
        return self._download(Received(sha256, offset_bytes))

    def _download(self, received: Received) -> Generator[bytes, None, None]:
        patience = Patience(_JITTER, connected=False, reached_bytes=received.offset_bytes)
        while True:
            try:
                with typed_errors(self._address):
                    call = self._blobs.Download(received.request(), timeout=10 * self._deadline_s)
                    try:
                        for response in call:
                            yield received.take(response)
                    finally:
                        call.cancel()
                break
            except PodiumError as error:
                patience.reached(received.offset_bytes)
                time.sleep(patience.wait_s(error))
        received.check_whole()

    def download_to(
        self, sha256: str, path: Path, *, size_bytes: int | None = None, progress: Progress | None = None
    ) -> int:
        """Download a blob into a file, which is there only once all is checked; how many bytes it has.

        What has come lies beside it in a .part file, and the next call goes on with that.

        Raises:
            NotFound: there is no such blob, or it is another's.
            BlobDamaged: the bytes are not those of the hash, or not as many as `size_bytes`.
            InvalidRequest: the place cannot be written.
        """
        with PartFile(path, sha256) as part:
            received = part.begun(size_bytes)
            resumed = received.offset_bytes > 0
            try:
                self._fill(part, received, progress, size_bytes or 0)
            except (BlobDamaged, InvalidRequest) as error:
                if not resumed or error.field == "path":
                    raise
                # What an earlier call left may be at fault, e.g. after a power cut.
                part.restart()
                received = part.begun(size_bytes)
                self._fill(part, received, progress, size_bytes or 0)
            part.finish()
        return received.offset_bytes

    def _fill(self, part: PartFile, received: Received, progress: Progress | None, size_bytes: int) -> None:
        with closing(self._download(received)) as pieces:
            for data in pieces:
                part.write(data)
                if progress is not None:
                    progress(received.offset_bytes, size_bytes)

    def collect_garbage(self, *, dry_run: bool = False) -> blob_pb2.CollectGarbageResponse:
        """Remove blobs that nothing refers to, or say how much that would be; needs the role operator."""
        request = blob_pb2.CollectGarbageRequest(dry_run=dry_run)
        with typed_errors(self._address):
            return self._blobs.CollectGarbage(request, timeout=self._deadline_s)


class AsyncBlobCalls:
    """The calls about blobs for asyncio, method for method as `BlobCalls`."""

    _address: Address
    _deadline_s: float
    _blobs: "blob_pb2_grpc.BlobServiceAsyncStub"

    async def upload(self, path: Path, *, progress: Progress | None = None) -> blob_pb2.BlobRef:
        """Store a file and return the reference to submit with.

        Goes on by itself where the connection breaks, and where an earlier upload broke off.

        Args:
            path: the file.
            progress: told bytes sent and bytes in all.

        Raises:
            ServerUnavailable: the server cannot be reached, or too many attempts in a row moved no byte.
            LimitExceeded: the blob is too large, or a quota is used up.
        """
        blob = await asyncio.to_thread(blob_of, path)
        with path.open("rb", buffering=0) as file:
            return await self._upload(file_reader(file), blob, progress)

    async def upload_bytes(
        self, data: bytes, *, media_type: str, file_name: str = "", progress: Progress | None = None
    ) -> blob_pb2.BlobRef:
        """Store bytes from memory, as `upload` does."""
        blob = blob_of_bytes(data, media_type=media_type, file_name=file_name)
        return await self._upload(bytes_reader(data), blob, progress)

    async def _upload(
        self, read_at: ReadAt, blob: blob_pb2.BlobRef, progress: Progress | None
    ) -> blob_pb2.BlobRef:
        patience = Patience(_JITTER)
        committed = await self._committed(blob)
        while committed is not None:
            sending = Sending(read_at, blob, committed, progress)
            try:
                with typed_errors(self._address):
                    await self._blobs.Upload(sending.requests(), timeout=10 * self._deadline_s)
                break
            except PodiumError as error:
                sending.stop()
                committed = await self._committed_after(error, blob, patience)
        if progress is not None:
            progress(blob.size_bytes, blob.size_bytes)
        return blob

    async def _committed(self, blob: blob_pb2.BlobRef) -> int | None:
        """How many bytes the server has; None when it has the whole blob."""
        with typed_errors(self._address):
            state = await self._blobs.Stat(blob_pb2.StatRequest(sha256=blob.sha256), timeout=self._deadline_s)
        return None if state.complete else state.committed_bytes

    async def _committed_after(self, error: PodiumError, blob: blob_pb2.BlobRef, patience: Patience) -> int | None:
        while True:
            await asyncio.sleep(patience.wait_s(error))
            try:
                committed = await self._committed(blob)
            except PodiumError as failure:
                error = failure
            else:
                patience.reached(committed or 0)
                return committed

    def download(self, sha256: str, *, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """A blob's bytes from an offset, in chunks; goes on by itself where the connection breaks.

        Raises:
            NotFound: there is no such blob, or it is another's.
            BlobDamaged: read from 0, the bytes are not those of the hash; raised after the last chunk.
        """
        return self._download(Received(sha256, offset_bytes))

    async def _download(self, received: Received) -> AsyncGenerator[bytes, None]:
        patience = Patience(_JITTER, connected=False, reached_bytes=received.offset_bytes)
        while True:
            try:
                with typed_errors(self._address):
                    call = self._blobs.Download(received.request(), timeout=10 * self._deadline_s)
                    try:
                        async for response in call:
                            yield received.take(response)
                    finally:
                        call.cancel()
                break
            except PodiumError as error:
                patience.reached(received.offset_bytes)
                await asyncio.sleep(patience.wait_s(error))
        received.check_whole()

    async def download_to(
        self, sha256: str, path: Path, *, size_bytes: int | None = None, progress: Progress | None = None
    ) -> int:
        """Download a blob into a file, which is there only once all is checked; how many bytes it has.

        What has come lies beside it in a .part file, and the next call goes on with that.

        Raises:
            NotFound: there is no such blob, or it is another's.
            BlobDamaged: the bytes are not those of the hash, or not as many as `size_bytes`.
            InvalidRequest: the place cannot be written.
        """
        with PartFile(path, sha256) as part:
            received = await asyncio.to_thread(part.begun, size_bytes)
            resumed = received.offset_bytes > 0
            try:
                await self._fill(part, received, progress, size_bytes or 0)
            except (BlobDamaged, InvalidRequest) as error:
                if not resumed or error.field == "path":
                    raise
                # What an earlier call left may be at fault, e.g. after a power cut.
                part.restart()
                received = part.begun(size_bytes)
                await self._fill(part, received, progress, size_bytes or 0)
            await asyncio.to_thread(part.finish)
        return received.offset_bytes

    async def _fill(self, part: PartFile, received: Received, progress: Progress | None, size_bytes: int) -> None:
        async with aclosing(self._download(received)) as pieces:
            async for data in pieces:
                await asyncio.to_thread(part.write, data)
                if progress is not None:
                    progress(received.offset_bytes, size_bytes)

    async def collect_garbage(self, *, dry_run: bool = False) -> blob_pb2.CollectGarbageResponse:
        """Remove blobs that nothing refers to, or say how much that would be; needs the role operator."""
        request = blob_pb2.CollectGarbageRequest(dry_run=dry_run)
        with typed_errors(self._address):
            return await self._blobs.CollectGarbage(request, timeout=self._deadline_s)

"""Reads documents that callers attach: the same reader as on a device, on bytes the caller uploaded."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from agents.invocation import AgentContext
from tools.document.places import reread_places
from tools.document.reader import DocumentReader, ScannedDocument


@runtime_checkable
class BlobReader(Protocol):
    """Where attachments lie; the cloud's blob store."""

    def read(self, sha256: str, *, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """The content of a blob, in pieces.

        Raises:
            NotFound: there is no such blob.
        """
        ...


class DeskReader:
    """One document reader for all calls: loads its models at first use and reads one document at a time."""

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._lock = Lock()
        self._reader: DocumentReader | None = None

    def open(self, data: bytes, name: str) -> ScannedDocument:
        """Read a document (see `DocumentReader.open`)."""
        with self._lock:
            return self._loaded().open(data, name)

    def _loaded(self) -> DocumentReader:
        if self._reader is None:
            self._reader = DocumentReader(threads=self._threads)
        return self._reader


def resources(data_dir: object) -> Mapping[str, object]:
    """What the agents of this pack share besides the blobs."""
    return {"desk_reader": DeskReader(threads=1)}


async def read_attachment(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Read the attached document.

    Raises:
        NotFound: the attachment was not uploaded.
        ImageError: it is not a readable PNG, JPEG or PDF.
    """
    reading = (await _open(inputs, context)).reading
    lines = [line.confidence for page in reading.pages for line in page.lines]
    return {
        "reading": reading.to_json(),
        "confidence_score": round(sum(lines) / len(lines), 4) if lines else 0.0,
        "sources": [
            {
                "id": "D1",
                "kind": "document",
                "label": reading.name,
                "location": f"{len(reading.pages)} pages",
                "sha256": reading.sha256,
            }
        ],
    }


async def reread_attachment(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Read single places of the attached document again, larger and differently prepared."""
    return await asyncio.to_thread(reread_places, await _open(inputs, context), inputs)


async def _open(inputs: Mapping[str, Any], context: AgentContext) -> ScannedDocument:
    attachment = inputs["attachments"][0]
    # runtime_checkable protocols may be asked for like a class; mypy only knows concrete ones here.
    blobs = context.resources.get("blobs", BlobReader)  # type: ignore[type-abstract]
    reader = context.resources.get("desk_reader", DeskReader)
    data = b"".join([piece async for piece in blobs.read(attachment["sha256"])])
    return await asyncio.to_thread(reader.open, data, attachment["file_name"] or "attachment")

"""The document pipeline of a device: a file in, an observation out; the picture stays on the device."""

import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from edge.watching import SUFFIXES
from podium.errors import InvalidRequest
from tools.document.reader import DocumentReader, ScannedDocument
from tools.document.reading import content_hash

QUESTION = "Check this invoice."
MAX_FILE_BYTES = 64 * 1024 * 1024
_KEPT_DOCUMENTS = 16

NAMESPACE = uuid.UUID("6f1d6f0e-8a0e-4c86-9c3b-0d0a5b1f6a11")
"""Names observations: the same file seen again on the same device is the same observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSeen:
    """A document that was read on the device and is to be sent up."""

    observation_id: str
    text: str
    scan: ScannedDocument


class DocumentPipeline:
    """Reads documents and remembers the last few, so that the cloud can ask for a place to be read again."""

    def __init__(
        self, reader: DocumentReader, *, device_id: str, folder: Path | None = None, question: str = QUESTION
    ) -> None:
        """Read with `reader`; what was seen before a restart is looked for in `folder`."""
        self._reader = reader
        self._folder = folder
        self._device_id = device_id
        self._question = question
        self._scans: OrderedDict[str, ScannedDocument] = OrderedDict()
        self._paths: dict[str, Path] = {}

    def see(self, path: Path, *, observation_id: str = "") -> DocumentSeen:
        """Read one file.

        Raises:
            InvalidRequest: the file cannot be read or is larger than `MAX_FILE_BYTES`.
            ImageError: it is not a readable PNG, JPEG or PDF; the code says why.
        """
        data = self._bytes(path)
        scan = self._reader.open(data, path.name)
        self._paths[scan.reading.sha256] = path
        self._remember(scan)
        name = f"{self._device_id}/{path.name}/{scan.reading.sha256}"
        return DocumentSeen(
            observation_id=observation_id or str(uuid.uuid5(NAMESPACE, name)), text=self._question, scan=scan
        )

    def document(self, sha256: str) -> ScannedDocument | None:
        """A document seen before, from memory or from its file; None when it is gone or has changed."""
        if (scan := self._scans.get(sha256)) is not None:
            self._scans.move_to_end(sha256)
            return scan
        path = self._paths.get(sha256) or self._found(sha256)
        if path is None or not path.exists():
            return None
        scan = self._reader.open(self._bytes(path), path.name)
        if scan.reading.sha256 != sha256:
            return None
        self._remember(scan)
        return scan

    def _found(self, sha256: str) -> Path | None:
        """The file of that content in the folder: after a restart the cloud may still ask about it."""
        for path in sorted(self._folder.iterdir()) if self._folder is not None else ():
            if path.suffix.lower() not in SUFFIXES or not path.is_file():
                continue
            if path.stat().st_size <= MAX_FILE_BYTES and content_hash(path.read_bytes()) == sha256:
                return path
        return None

    def _remember(self, scan: ScannedDocument) -> None:
        self._scans[scan.reading.sha256] = scan
        while len(self._scans) > _KEPT_DOCUMENTS:
            self._scans.popitem(last=False)

    @staticmethod
    def _bytes(path: Path) -> bytes:
        try:
            size_bytes = path.stat().st_size
            if size_bytes > MAX_FILE_BYTES:
                raise InvalidRequest(
                    f"{path} has {size_bytes} bytes; at most {MAX_FILE_BYTES} are read", field="file"
                )
            return path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error}", field="file") from error

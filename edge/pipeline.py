"""The document pipeline of a device: a file in, an observation out; the picture stays on the device."""

import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from edge.watching import SUFFIXES, shown_name
from edge.work import TracedWork
from podium.errors import InvalidRequest
from tools.document.reader import DocumentReader, ScannedDocument
from tools.document.reading import DocumentReading, content_hash
from tools.images.decode import ImageLimits
from tools.images.errors import ImageTooLarge

QUESTION = "Check this invoice."
MAX_FILE_BYTES = ImageLimits().max_bytes
_KEPT_FILES = 4
"""Documents whose file is kept in memory: each may have `MAX_FILE_BYTES`."""
_KEPT_READINGS = 256
"""Documents whose text is kept, so that a place of them can be read again without reading them whole."""

NAMESPACE = uuid.UUID("6f1d6f0e-8a0e-4c86-9c3b-0d0a5b1f6a11")
"""Names observations: the same file seen again on the same device is the same observation."""


class FileUnreadable(InvalidRequest):
    """The file system does not give the file; it may do so later."""

    code = "FILE_UNREADABLE"
    advice = "Check that the file is there and may be read by the device's user."


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSeen:
    """A document that was read on the device and is to be sent up."""

    observation_id: str
    text: str
    scan: ScannedDocument
    reading: TracedWork | None = None
    """When it was read; its task goes on with this trace."""


@dataclass(frozen=True, slots=True)
class _Known:
    path: Path
    reading: DocumentReading


class DocumentPipeline:
    """Reads documents and remembers the last of them, so that the cloud can ask for a place to be read again.

    To be used by one thread at a time.
    """

    def __init__(
        self, reader: DocumentReader, *, device_id: str, folder: Path | None = None, question: str = QUESTION
    ) -> None:
        """Read with `reader`; what was seen before a restart is looked for in `folder`."""
        self._reader = reader
        self._folder = folder
        self._device_id = device_id
        self._question = question
        self._scans: OrderedDict[str, ScannedDocument] = OrderedDict()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def see(self, path: Path, *, observation_id: str = "") -> DocumentSeen:
        """Read one file.

        Raises:
            FileUnreadable: the file system does not give it.
            ImageError: it is not a readable PNG, JPEG or PDF, or too large; the code says why.
        """
        name = shown_name(path)
        scan = self._reader.open(_content(path), name)
        self._remember(path, scan)
        place = f"{self._device_id}/{name}/{scan.reading.sha256}"
        return DocumentSeen(
            observation_id=observation_id or str(uuid.uuid5(NAMESPACE, place)), text=self._question, scan=scan
        )

    def document(self, sha256: str) -> ScannedDocument | None:
        """A document seen before, from memory or from its file; None when it is gone or has changed."""
        if (scan := self._scans.get(sha256)) is not None:
            self._scans.move_to_end(sha256)
            return scan
        known = self._known.get(sha256)
        found = self._found(sha256, known.path if known is not None else None)
        if found is None:
            return None
        path, data = found
        if known is not None:
            scan = self._reader.reopen(data, known.reading)
        else:
            scan = self._reader.open(data, shown_name(path))
        self._remember(path, scan)
        return scan

    def _found(self, sha256: str, likely: Path | None) -> tuple[Path, bytes] | None:
        """The file of that content: where it was, or in the folder, where the cloud may ask about an old one."""
        in_folder = sorted(self._folder.iterdir()) if self._folder is not None and self._folder.is_dir() else []
        documents = (path for path in in_folder if path.suffix.lower() in SUFFIXES and path.is_file())
        for path in ([likely] if likely is not None else []) + list(documents):
            try:
                data = _content(path)
            except (FileUnreadable, ImageTooLarge):
                continue  # Not the one: that was read.
            if content_hash(data) == sha256:
                return path, data
        return None

    def _remember(self, path: Path, scan: ScannedDocument) -> None:
        sha256 = scan.reading.sha256
        self._scans[sha256] = scan
        self._known[sha256] = _Known(path, scan.reading)
        self._known.move_to_end(sha256)
        while len(self._scans) > _KEPT_FILES:
            self._scans.popitem(last=False)
        while len(self._known) > _KEPT_READINGS:
            self._known.popitem(last=False)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than allowed: the file may grow while it is read.
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise FileUnreadable(f"{shown_name(path)} cannot be read: {error.strerror}", field="file") from error
    if len(data) > MAX_FILE_BYTES:
        raise ImageTooLarge(f"{shown_name(path)} has more than {MAX_FILE_BYTES} bytes", field="file")
    return data

"""Reads a scanned document on the device: lines of text with their places go up, the picture stays.

reader = DocumentReader()
scan = reader.open(data, "invoice.jpg")
scan.reading                                    what travels
scan.crops                                      small pictures of doubtful lines, beside the reading
scan.reread(1, (120, 80, 300, 40), CONSENSUS)   one place again, larger and seen five ways
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.document.crops import doubtful_crops
from tools.document.ctc import legibility
from tools.document.lines import quad, reading_order, text_lines
from tools.document.ocr import Corners, DetectionSetting, PpOcr
from tools.document.orientation import page_turn, skew
from tools.document.page_numbers import missing_pages
from tools.document.pages import ScannedFile
from tools.document.placement import Placement, turned
from tools.document.reading import Box, Crop, DocumentReading, Page, PageFinding, TextLine, content_hash
from tools.document.recognition import QUICK_VIEWS, View, read_line
from tools.document.rereading import RereadSetting
from tools.images.decode import ImageLimits, Pixels
from tools.images.quality import BLURRED_BELOW, is_blank, sharpness
from tools.models.pinned import PinnedModels

_NO_TEXT_BELOW = 0.5
"""Mean confidence of its characters under which a box holds no text but a stamp, a logo or a stain."""


class DocumentReader:
    """Reads pages with the three PP-OCR models; loads them once, never downloads anything."""

    def __init__(
        self,
        *,
        threads: int = 1,
        limits: ImageLimits | None = None,
        detection: DetectionSetting | None = None,
        models: PinnedModels | None = None,
    ) -> None:
        """Load the models.

        Args:
            threads: threads of one model run; 1 or 2 on a small device.
            limits: what the device is willing to open.
            detection: how eagerly text is looked for.
            models: the list of reviewed models; the committed one unless given.

        Raises:
            ModelError: a model is not installed or not the reviewed one.
            OnnxLoadError: the runtime cannot load a model.
        """
        self._ocr = PpOcr(threads=threads, models=models)
        self._limits = limits or ImageLimits()
        self._detection = detection or DetectionSetting()

    def read(self, data: bytes, name: str) -> DocumentReading:
        """Read every page of a PNG, JPEG or PDF.

        Raises:
            ImageError: the file cannot be opened; the subclass and its code say why.
            NonFinite, OnnxRunError: a model failed.
        """
        return self.open(data, name).reading

    def open(self, data: bytes, name: str) -> "ScannedDocument":
        """Read every page and keep the file at hand, so that single places can be read again.

        Raises:
            ImageError: the file cannot be opened; the subclass and its code say why.
            NonFinite, OnnxRunError: a model failed.
        """
        file = ScannedFile(data, self._limits)
        pages: list[Page] = []
        findings: list[PageFinding] = []
        crops: list[tuple[Crop, bytes]] = []
        for number, picture in enumerate(file.pages(), start=1):
            page, found = self._page(picture, number)
            pages.append(page)
            findings.extend(found)
            crops.extend(doubtful_crops(picture, page))
        reading = DocumentReading(
            name=name,
            sha256=content_hash(data),
            media_type=file.media_type,
            pages=tuple(pages),
            findings=(*findings, *missing_pages(pages)),
            crops=tuple(crop for crop, _ in crops),
        )
        return ScannedDocument(reader=self, file=file, reading=reading, crops=tuple(crops))

    def reopen(self, data: bytes, reading: DocumentReading) -> "ScannedDocument":
        """Take up a document read earlier, e.g. before a restart, without reading it again.

        Raises:
            ValueError: `data` is not the file the reading was made from.
            ImageError: the file cannot be opened.
        """
        if content_hash(data) != reading.sha256:
            raise ValueError(f"the file is not the one {reading.name} was read from; use the file with its hash")
        return ScannedDocument(reader=self, file=ScannedFile(data, self._limits), reading=reading, crops=())

    def reread(
        self, file: ScannedFile, page: int, box: Box, orientation_degrees: int, setting: RereadSetting
    ) -> tuple[TextLine, ...]:
        """Read one place again (see `ScannedDocument.reread`)."""
        margin = round(0.25 * min(box[2], box[3])) + 4
        wider = box[0] - margin, box[1] - margin, box[2] + 2 * margin, box[3] + 2 * margin
        part, cut, scale = file.part(page, wider, setting.scale)
        placement = turned(part, orientation_degrees, scale=scale, offset=cut[:2])
        corners = self._ocr.detect(placement.picture, setting.detection)
        return tuple(self._lines(placement, corners, setting.views, patient=True))

    def _page(self, picture: Pixels, number: int) -> tuple[Page, list[PageFinding]]:
        height, width = picture.shape[:2]
        sharp = sharpness(picture)
        findings = []
        lines: list[TextLine] = []
        turn, skew_degrees = 0, 0.0
        if not is_blank(picture):
            corners = self._ocr.detect(picture, self._detection)
            turn = page_turn(self._ocr, picture, corners)
            placement = turned(picture, turn)
            if turn:
                corners = self._ocr.detect(placement.picture, self._detection)
                message = f"the page was turned by {turn} degrees"
                findings.append(PageFinding(code="page_rotated", message=message, page=number))
            skew_degrees = skew(corners)
            lines = self._lines(placement, corners)
        if not lines:
            findings.append(PageFinding(code="page_blank", message="no text was found on the page", page=number))
        elif sharp < BLURRED_BELOW:
            message = f"the page is blurred (sharpness {sharp:.0f}, {BLURRED_BELOW:.0f} is needed); scan it again"
            findings.append(PageFinding(code="page_blurred", message=message, page=number))
        page = Page(
            page=number,
            width=width,
            height=height,
            lines=tuple(lines),
            sharpness=sharp,
            orientation_degrees=turn,
            skew_degrees=skew_degrees,
        )
        return page, findings

    def _lines(
        self,
        placement: Placement,
        corners: Sequence[Corners],
        views: Sequence[View] = QUICK_VIEWS,
        *,
        patient: bool = False,
    ) -> list[TextLine]:
        found: list[tuple[Corners, TextLine]] = []
        for box in corners:
            read = read_line(self._ocr, placement.picture, box, views, patient=patient)
            if legibility(read.glyphs) < _NO_TEXT_BELOW:
                continue
            for line in text_lines(read):
                upright = np.array(line.quad, dtype=np.float32).reshape(4, 2)
                stored = TextLine(text=line.text, quad=quad(placement.stored(upright)), confidence=line.confidence)
                found.append((upright, stored))
        return reading_order(found, skew(corners))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedDocument:
    """A document that was read, with its file at hand."""

    reader: DocumentReader
    file: ScannedFile
    reading: DocumentReading
    crops: tuple[tuple[Crop, bytes], ...]
    """PNG pictures of lines the OCR was not sure of; they travel as blobs, only if asked for."""

    def reread(self, page: int, box: Box, setting: RereadSetting) -> tuple[TextLine, ...]:
        """Read the place `box` of a page again, larger and in the ways the setting names.

        Args:
            page: the page's number, from 1.
            box: x, y, width, height in pixels of the stored page.
            setting: how to look at it; see `tools.document.rereading`.

        Returns:
            The lines there, their quads in the frame of the stored page.

        Raises:
            ValueError: there is no such page, or the box lies outside it.
            ImageError: the page cannot be opened any more.
        """
        if not 1 <= page <= len(self.reading.pages):
            raise ValueError(f"the document has {len(self.reading.pages)} pages, not page {page}")
        turn = self.reading.pages[page - 1].orientation_degrees
        return self.reader.reread(self.file, page, box, turn, setting)

"""Real pages through the real models: text, places, orientation, findings, crops and second readings."""

import io
import sys
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageFilter

from tests.unit.tools.document.printed_page import CHINESE, LETTER, page, pdf, png
from tools.document.pages import ScannedFile
from tools.document.reader import DocumentReader
from tools.document.reading import DocumentReading, TextLine
from tools.document.rereading import CONSENSUS, ENLARGED
from tools.images.decode import ImageLimits
from tools.images.errors import ImageBroken, ImageEmpty, ImageTooLarge, PdfWithoutPages
from tools.models.pinned import ModelNotPinned, PinnedModels


def texts(reading: DocumentReading) -> list[str]:
    return [line.text for page in reading.pages for line in page.lines]


def by_text(lines: tuple[TextLine, ...], text: str) -> TextLine:
    return next(line for line in lines if line.text == text)


def test_reads_accents_currency_and_places_in_reading_order(reader: DocumentReader) -> None:
    data = png(page())
    reading = reader.read(data, "letter.png")
    assert texts(reading) == [text for _, _, text in LETTER]
    assert reading.findings == ()
    assert reading.media_type == "image/png"
    assert DocumentReading.from_json(reading.to_json()).pages[0].lines[0].text == "Müller & Söhne GmbH"
    for x, y, text in LETTER:
        left, top, _, height = by_text(reading.pages[0].lines, text).box
        assert abs(left - x) < 12
        assert y - 12 < top < y + 20
        assert 15 < height < 60


def test_reads_chinese(reader: DocumentReader) -> None:
    reading = reader.read(png(page(CHINESE, size=(680, 200), chinese=True)), "发票.png")
    assert texts(reading) == [text for _, _, text in CHINESE]


@pytest.mark.parametrize("turn", [90, 180, 270])
@pytest.mark.parametrize("chinese", [False, True], ids=["latin", "chinese"])
def test_a_turned_page_is_read_upright_and_keeps_its_frame(
    reader: DocumentReader, turn: int, chinese: bool
) -> None:
    words = CHINESE if chinese else LETTER
    upright = page(words, chinese=chinese)
    turned = upright.rotate(-turn, expand=True)
    reading = reader.read(png(turned), "turned.png")
    only = reading.pages[0]
    assert only.orientation_degrees == turn
    assert (only.width, only.height) == turned.size
    assert [finding.code for finding in reading.findings] == ["page_rotated"]
    assert texts(reading) == [text for _, _, text in words]
    x, y, text = words[-1]
    line = by_text(only.lines, text)
    assert abs((line.angle_degrees - turn + 180) % 360 - 180) < 3
    # The corner where the text starts, turned like the page.
    width, height = upright.size
    expected = {90: (height - y, x), 180: (width - x, height - y), 270: (y, width - x)}[turn]
    assert abs(line.quad[0] - expected[0]) < 20
    assert abs(line.quad[1] - expected[1]) < 20


@pytest.mark.parametrize("degrees", [-3.0, 3.0])
def test_skew_is_measured_and_rows_stay_rows(reader: DocumentReader, degrees: float) -> None:
    askew = page().rotate(-degrees, resample=Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    reading = reader.read(png(askew), "askew.png")
    assert reading.pages[0].skew_degrees == pytest.approx(degrees, abs=0.5)
    assert reading.pages[0].orientation_degrees == 0
    assert texts(reading) == [text for _, _, text in LETTER]


def test_a_pdf_is_read_page_by_page_and_a_missing_page_is_named(reader: DocumentReader) -> None:
    first = page((*LETTER[:2], (500, 380, "Seite 1 von 3")), text_size=22)
    second = page(((60, 60, "Zwischensumme 17,00 €"), (500, 380, "Seite 2 von 3")), text_size=22)
    reading = reader.read(pdf(first, second), "two.pdf")
    assert [page.page for page in reading.pages] == [1, 2]
    assert reading.media_type == "application/pdf"
    assert "Zwischensumme 17,00 €" in [line.text for line in reading.pages[1].lines]
    (finding,) = reading.findings
    assert finding.code == "page_missing"
    assert "missing: 3" in finding.message
    assert finding.box is not None
    assert finding.box[1] > 400  # 200 dpi drawing of a 150 dpi page: the label stands near the lower edge


def test_blank_and_blurred_pages_are_named(reader: DocumentReader) -> None:
    blank = reader.read(png(Image.new("RGB", (800, 1100), (250, 248, 240))), "blank.png")
    assert [finding.code for finding in blank.findings] == ["page_blank"]
    blurred = reader.read(png(page().filter(ImageFilter.GaussianBlur(3.2))), "blurred.png")
    assert [finding.code for finding in blurred.findings] == ["page_blurred"]


def test_doubtful_lines_come_with_a_small_picture(reader: DocumentReader) -> None:
    document = reader.open(png(page().filter(ImageFilter.GaussianBlur(2.6))), "blurred.png")
    doubtful = [line for line in document.reading.pages[0].lines if line.confidence < 0.9]
    assert doubtful
    assert len(document.crops) == len(doubtful)
    assert document.reading.crops == tuple(crop for crop, _ in document.crops)
    for crop, data in document.crops:
        image = Image.open(io.BytesIO(data))
        assert abs(image.width - crop.box[2]) <= 1
        assert len(data) <= 48 * 1024
    assert reader.open(png(page()), "sharp.png").reading.crops == ()


def test_a_line_that_is_the_whole_picture_does_not_leave_as_a_crop(reader: DocumentReader) -> None:
    # So blurred that the detector takes the page for one line of text.
    document = reader.open(png(page().filter(ImageFilter.GaussianBlur(4.5))), "blurred.png")
    (line,) = document.reading.pages[0].lines
    assert line.confidence < 0.9
    assert line.box[2] * line.box[3] > 680 * 420
    assert document.crops == ()


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_rereading_maps_back_to_the_stored_page(reader: DocumentReader, turn: int) -> None:
    data = png(page().rotate(-turn, expand=True))
    document = reader.open(data, "letter.png")
    line = by_text(document.reading.pages[0].lines, "1.234,56 €")
    for setting in (ENLARGED, CONSENSUS):
        (again,) = document.reread(1, line.box, setting)
        assert again.text == line.text
        assert np.allclose(again.box, line.box, atol=12)
    later = reader.reopen(data, DocumentReading.from_json(document.reading.to_json()))
    assert [found.text for found in later.reread(1, line.box, ENLARGED)] == [line.text]


@pytest.mark.parametrize("make", [png, pdf])
def test_a_large_place_is_enlarged_no_more_than_memory_allows(make: Callable[[Image.Image], bytes]) -> None:
    data = make(page(size=(900, 900)))
    whole = 1200 if make is pdf else 900  # 150 dpi drawn at 200
    file = ScannedFile(data, ImageLimits(max_pixels=2_000_000))
    pixels, cut, scale = file.part(1, (0, 0, 5000, 5000), 3.0)
    assert cut == (0, 0, whole, whole)
    assert 1.8e6 < pixels.shape[0] * pixels.shape[1] <= 2e6
    assert abs(scale - pixels.shape[1] / whole) < 0.01
    assert file.part(1, (0, 0, 100, 100), 3.0)[2] == pytest.approx(3.0, abs=0.02)


def test_a_pdf_gains_real_detail_when_read_again() -> None:
    coarse = DocumentReader(limits=ImageLimits(pdf_dpi=45))
    data = pdf(page(((60, 60, "IBAN DE89 3704 0044 0532 0130 00"),), size=(680, 160)))
    document = coarse.open(data, "coarse.pdf")
    first = document.reading.pages[0].lines
    assert [line.text for line in first] != ["IBAN DE89 3704 0044 0532 0130 00"]
    width, height = document.reading.pages[0].width, document.reading.pages[0].height
    again = document.reread(1, (0, 0, width, height), ENLARGED)
    assert [line.text for line in again] == ["IBAN DE89 3704 0044 0532 0130 00"]
    assert again[0].confidence > 0.9


def test_rereading_refuses_places_that_are_not_there(reader: DocumentReader) -> None:
    data = png(page())
    document = reader.open(data, "letter.png")
    with pytest.raises(ValueError, match="has 1 pages, not page 2"):
        document.reread(2, (0, 0, 10, 10), ENLARGED)
    with pytest.raises(ValueError, match="does not lie on the page"):
        document.reread(1, (5000, 5000, 10, 10), ENLARGED)
    with pytest.raises(ValueError, match="not the one"):
        reader.reopen(data + b"x", document.reading)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", ImageEmpty),
        (png(page())[:2000], ImageBroken),
        (b"%PDF-1.4\n1 0 obj<</Type/Pages/Kids[]/Count 0>>endobj", PdfWithoutPages),
    ],
)
def test_bad_files_are_typed_errors(reader: DocumentReader, data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        reader.read(data, "bad")


def test_limits_hold(reader: DocumentReader) -> None:
    del reader
    with pytest.raises(ImageTooLarge):
        DocumentReader(limits=ImageLimits(max_pixels=1000)).read(png(page()), "large.png")


def test_models_that_are_not_listed_are_never_loaded() -> None:
    with pytest.raises(ModelNotPinned):
        DocumentReader(models=PinnedModels({}))


def test_the_ocr_package_s_own_code_is_never_imported(reader: DocumentReader) -> None:
    reader.read(png(page()), "letter.png")
    assert "rapidocr" not in sys.modules

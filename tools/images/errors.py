"""Why a picture or PDF could not be opened: one closed tree, each with a code and what to do next.

::

    ImageError (podium.errors.UnsupportedMedia)
    ├── ImageEmpty          zero bytes
    ├── ImageUnknownFormat  neither PNG, JPEG nor PDF by its first bytes
    ├── ImageTooLarge       more bytes or pixels than the device allows, whatever the file claims
    ├── ImageBroken         truncated or damaged
    ├── PdfEncrypted        needs a password
    ├── PdfWithoutPages     opens, but there is nothing in it
    └── PdfTooManyPages     more pages than the device reads at once
"""

from grpc import StatusCode

from podium.errors import UnsupportedMedia


class ImageError(UnsupportedMedia):
    """A document that cannot be opened."""

    code = "IMAGE_ERROR"
    advice = "Scan the document again."


class ImageEmpty(ImageError):
    """The file has no bytes."""

    code = "IMAGE_EMPTY"
    advice = "Check that the scanner or the copy finished, then send the file again."


class ImageUnknownFormat(ImageError):
    """The first bytes are those of no format read here."""

    code = "IMAGE_UNKNOWN_FORMAT"
    advice = "Send a PNG, a JPEG or a PDF."


class ImageTooLarge(ImageError):
    """The file, or the picture it claims to hold, is larger than allowed; nothing was allocated for it."""

    code = "IMAGE_TOO_LARGE"
    status = StatusCode.RESOURCE_EXHAUSTED
    advice = "Scan at 200 to 300 dpi, or raise the limit in the device's settings."


class ImageBroken(ImageError):
    """The file is truncated or damaged."""

    code = "IMAGE_BROKEN"
    advice = "Scan the document again, or send the original file once more."


class PdfEncrypted(ImageError):
    """The PDF needs a password."""

    code = "PDF_ENCRYPTED"
    advice = "Save the PDF without a password and send it again."


class PdfWithoutPages(ImageError):
    """The PDF opens but holds no page."""

    code = "PDF_WITHOUT_PAGES"
    advice = "Check the program that made the PDF, then send it again."


class PdfTooManyPages(ImageError):
    """The PDF has more pages than the device reads at once."""

    code = "PDF_TOO_MANY_PAGES"
    status = StatusCode.RESOURCE_EXHAUSTED
    advice = "Split the PDF, or raise the page limit in the device's settings."

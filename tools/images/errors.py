"""Why a picture or PDF could not be opened: one closed tree, each with a code and what to do next.

ImageError
├── ImageEmpty          zero bytes
├── ImageUnknownFormat  neither PNG, JPEG nor PDF by its first bytes
├── ImageTooLarge       more bytes or pixels than the device allows, whatever the file claims
├── ImageBroken         truncated or damaged
├── PdfEncrypted        needs a password
├── PdfWithoutPages     opens, but there is nothing in it
└── PdfTooManyPages     more pages than the device reads at once
"""


class ImageError(Exception):
    """A document that cannot be opened; `code` names the reason and `next_step` says what to do about it."""

    code = "image_error"
    next_step = "scan the document again"

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}; {self.next_step}")
        self.message = message


class ImageEmpty(ImageError):
    """The file has no bytes."""

    code = "image_empty"
    next_step = "check that the scanner or the copy finished, then send the file again"


class ImageUnknownFormat(ImageError):
    """The first bytes are those of no format read here."""

    code = "image_unknown_format"
    next_step = "send a PNG, a JPEG or a PDF"


class ImageTooLarge(ImageError):
    """The file, or the picture it claims to hold, is larger than allowed; nothing was allocated for it."""

    code = "image_too_large"
    next_step = "scan at 200 to 300 dpi, or raise the limit in the device's settings"


class ImageBroken(ImageError):
    """The file is truncated or damaged."""

    code = "image_broken"
    next_step = "scan the document again, or send the original file once more"


class PdfEncrypted(ImageError):
    """The PDF needs a password."""

    code = "pdf_encrypted"
    next_step = "save the PDF without a password and send it again"


class PdfWithoutPages(ImageError):
    """The PDF opens but holds no page."""

    code = "pdf_without_pages"
    next_step = "check the program that made the PDF, then send it again"


class PdfTooManyPages(ImageError):
    """The PDF has more pages than the device reads at once."""

    code = "pdf_too_many_pages"
    next_step = "split the PDF, or raise the page limit in the device's settings"

"""Bring a text into one Unicode form, and say what was taken out."""

import unicodedata
from dataclasses import dataclass

from tools.text.errors import TextInvalid, TextTooLong
from tools.text.request import Correction
from tools.text.wordlists import simplified_characters

MAX_REQUEST_CHARS = 4000

# Typographic twins that NFKC keeps apart; requests are typed with either.
_TWINS = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "−": "-", "–": "-", "—": "-", "〜": "~", "﹣": "-"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A cleaned text and the corrections that led to it."""

    text: str
    corrections: tuple[Correction, ...]


def clean(text: str, *, max_chars: int = MAX_REQUEST_CHARS) -> Cleaned:
    """NFKC, one form of quotes and dashes, simplified Chinese, no control or invisible characters, single spaces.

    Args:
        text: What the user sent.
        max_chars: The longest text that is accepted, before and after NFKC (which can lengthen it).

    Raises:
        TextInvalid: the text holds a lone surrogate.
        TextTooLong: the text is longer than `max_chars`.
    """
    _check_length(text, max_chars)
    lone = next((index for index, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
    if lone is not None:
        raise TextInvalid(f"the text holds a lone surrogate at character {lone}", field="text")
    removed = tuple(
        Correction(reason="control_character", original=char, replacement="", start=index, end=index + 1)
        for index, char in enumerate(text)
        if _is_invisible(char)
    )
    visible = _settle(text)
    _check_length(visible, max_chars)
    corrections = list(removed)
    without_controls = "".join(" " if char.isspace() else char for char in text if not _is_invisible(char))
    spaced = " ".join(without_controls.split())
    if spaced != without_controls:
        corrections.append(
            Correction(reason="whitespace", original=text, replacement=spaced, start=0, end=len(text))
        )
    if visible != spaced:
        corrections.append(
            Correction(reason="unicode_form", original=spaced, replacement=visible, start=0, end=len(text))
        )
    return Cleaned(text=visible, corrections=tuple(corrections))


def _settle(text: str) -> str:
    """Repeat until nothing changes: removing an invisible character can let two others compose."""
    while True:
        form = unicodedata.normalize("NFKC", text).translate(_TWINS).translate(simplified_characters())
        form = "".join(char for char in form if not _is_invisible(char))
        form = " ".join(form.split())
        if form == text:
            return form
        text = form


def _is_invisible(char: str) -> bool:
    """Control and format characters (NUL, zero-width, bidi overrides), except white space."""
    return unicodedata.category(char) in ("Cc", "Cf") and not char.isspace()


def _check_length(text: str, max_chars: int) -> None:
    if len(text) > max_chars:
        raise TextTooLong(f"the text has {len(text)} characters, the limit is {max_chars}", field="text")

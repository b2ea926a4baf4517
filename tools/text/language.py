"""Tell which language a request is written in: Chinese, English, or another."""

from tools.text.lattice import Reading
from tools.text.request import Language

_HAN_SHARE = 0.25
_KNOWN_SHARE = 0.3
_FEW_WORDS = 3


def detect_language(reading: Reading) -> Language:
    """The language of a reading.

    One Chinese character weighs as much as half an English word. A text in Latin letters of which hardly a word is
    known is not taken for English, unless it is too short to tell.
    """
    counts = {kind: sum(token.kind == kind for token in reading.tokens) for kind in ("han", "latin", "letter")}
    words = counts["han"] / 2 + counts["latin"] + counts["letter"]
    if words == 0 or counts["letter"] * 2 > words:
        return "other"
    if counts["han"] / 2 >= _HAN_SHARE * words:
        return "zh"
    known = sum(
        reading.tokens[index].kind == "latin"
        for piece in reading.pieces
        if piece.kind not in ("unmatched", "sign")
        for index in range(piece.first, piece.last)
    )
    return "en" if counts["latin"] <= _FEW_WORDS or known >= _KNOWN_SHARE * counts["latin"] else "other"

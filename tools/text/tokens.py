"""Cut a text into tokens: a Latin word, a run of digits, one Chinese character, or one other sign."""

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["latin", "digit", "han", "letter", "sign"]

_TOKEN = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f]+)"
    r"|(?P<digit>\d+)"
    r"|(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3007\U00020000-\U0003134f])"
    r"|(?P<letter>[^\W\d_A-Za-z\u00c0-\u024f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)"
    r"|(?P<sign>[^\w\s]|_)",
)
_JOINER = re.compile(r"[\s'\-/&_.]{1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token and its place [start, end)."""

    text: str
    kind: TokenKind
    start: int
    end: int


def tokenise(text: str) -> tuple[Token, ...]:
    """All tokens of `text` in order; white space yields none."""
    return tuple(
        Token(text=match[0], kind=_kind(match.lastgroup), start=match.start(), end=match.end())
        for match in _TOKEN.finditer(text)
    )


def alias_key(alias: str) -> tuple[str, ...]:
    """The words by which an alias is looked up: signs and spaces do not count (``Xi'an`` = ``xi an``)."""
    return tuple(token.text for token in tokenise(lower(alias)) if token.kind != "sign")


def joined(text: str, left: Token, right: Token) -> bool:
    """Whether two tokens may belong to one name: adjacent, or words with a space, hyphen or the like between."""
    if left.end == right.start:
        return True
    if left.kind == "han" or right.kind == "han":
        return False
    return _JOINER.fullmatch(text, left.end, right.start) is not None


def lower(text: str) -> str:
    """Lower case that keeps every character at its position (``İ`` would become two)."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _kind(group: str | None) -> TokenKind:
    match group:
        case "latin" | "digit" | "han" | "letter":
            return group
        case _:
            return "sign"

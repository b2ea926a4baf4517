"""Bytes that may be loaded as a model, because somebody answers for them; nothing else reaches a runtime.

`VerifiedContent` has a seal: only `answered_for` makes one, and it hashes the very bytes it hands on. Two places
call it: `tools.models.pinned` (the committed list answers) and `tools.artefacts.loading` (a trusted key does).
"""

import hashlib
from dataclasses import dataclass


class _Seal:
    pass


_SEAL = _Seal()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedContent:
    """The content of one model file or artefact, with who answers for it."""

    name: str
    data: bytes
    sha256: str
    """In hexadecimal."""
    answerer: str
    """For people: the package and version of the committed list, or the key that signed."""
    seal: _Seal

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("a VerifiedContent is made by tools.models.verified.answered_for only")


class OtherBytes(ValueError):
    """The bytes are not those that were answered for."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"the bytes have SHA-256 {sha256}")
        self.sha256 = sha256


def answered_for(name: str, data: bytes, *, sha256: str, answerer: str) -> VerifiedContent:
    """Seal bytes whose hash was answered for.

    Args:
        name: what the content is called, for messages.
        data: the bytes that will be loaded.
        sha256: the hash that the committed list or a signature vouches for, in hexadecimal.
        answerer: who vouches.

    Raises:
        OtherBytes: the bytes have another hash.
    """
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise OtherBytes(actual)
    return VerifiedContent(name=name, data=data, sha256=sha256, answerer=answerer, seal=_SEAL)

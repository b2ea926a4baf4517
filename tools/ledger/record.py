r"""One entry as one line, and what makes its line the only one that fits.

::

    {"sequence":7,"time":"2026-11-29T12:00:00.000000Z","kind":"entry","key":"t/0","previous":H,"commitment":C,
     "hash":H,"salt":S,"body":{...}}\n

without the line break shown here. The parts before `,"hash"` are the header.

- `commitment` is the SHA-256 of the salt's 32 characters and the body's bytes; the body is canonical JSON.
- `hash` is the SHA-256 of the header's bytes as they stand in the file. The header holds the commitment and the
  hash of the entry before it (`previous`), so every entry fixes all before it. The first one has 64 zeros.
- A redacted entry ends with `"redacted":true` in place of salt and body. Header and hash stay, so the chain holds.
  Without the salt (128 random bits) nobody can try out which body the commitment belongs to.

The key is in the header: it stays when the body is redacted, because the same effect must not be recorded again.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from podium.errors import InvalidRequest, LimitExceeded

MAX_BODY_BYTES = 1 << 20
MAX_KEY_BYTES = 512
MAX_LINE_BYTES = MAX_BODY_BYTES + 2 * MAX_KEY_BYTES + 1024
"""No sound line is longer: escaping doubles a key at most, because control characters are refused."""
SALT_BYTES = 16
GENESIS = "0" * 64
"""What the first entry names as the hash before it."""

Kind = Literal["entry", "redaction"]

_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
_CONTROL = re.compile("[\x00-\x1f]")
_LINE = re.compile(
    rb'(?P<header>\{"sequence":(?P<sequence>[1-9][0-9]{0,17}),"time":"(?P<time>[0-9T:.-]{26}Z)"'
    rb',"kind":"(?P<kind>entry|redaction)","key":"(?P<key>(?:[^"\\]|\\["\\])*+)"'
    rb',"previous":"(?P<previous>[0-9a-f]{64})","commitment":"(?P<commitment>[0-9a-f]{64})")'
    rb',"hash":"(?P<hash>[0-9a-f]{64})"'
    rb'(?:,"salt":"(?P<salt>[0-9a-f]{32})","body":(?P<body>\{[^\n]*\})|,"redacted":true)\}\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a ledger: kept elsewhere, it proves later that nothing up to it was changed or cut off."""

    sequence: int
    """Number of the last entry; 0 when there is none."""
    hash: str
    """Its hash, in hexadecimal."""

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read `SEQUENCE:HASH`, as `str` writes it.

        Raises:
            InvalidRequest: it is not of this form.
        """
        found = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", text)
        if found is None:
            raise InvalidRequest("a head is SEQUENCE:HASH with 64 hexadecimal digits", field="head")
        return cls(sequence=int(found[1]), hash=found[2])


EMPTY = Head(sequence=0, hash=GENESIS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry as it is read."""

    sequence: int
    """Position in the ledger, from 1."""
    time: datetime
    """When it was recorded, by the writer's clock, UTC."""
    kind: Kind
    """`redaction` for an entry that says which other one lost its body, why and by whom."""
    key: str
    """Idempotency key; empty when it has none."""
    hash: str
    body: dict[str, Any] | None
    """None when it was redacted."""


class Draft(NamedTuple):
    """An entry to be: only its place in the chain is missing. A tuple, because one is made for every entry."""

    kind: Kind
    key: str
    digest: bytes
    """Stands for kind and key in the index; empty without a key."""
    key_bytes: bytes
    """As it stands in the line, escaped."""
    salt: bytes
    body: bytes
    commitment: bytes


def draft(body: Mapping[str, Any], *, key: str, salt: bytes, kind: Kind = "entry") -> Draft:
    """Check a body and key, and commit to the body.

    Args:
        body: a JSON object.
        key: idempotency key; empty for none.
        salt: 16 random bytes, new for each entry.
        kind: what sort of entry.

    Raises:
        InvalidRequest: the body is not JSON (NaN, lone surrogates, a cycle) or the key holds control characters.
        LimitExceeded: body or key is too long.
    """
    text = _canonical(body)
    if len(text) > MAX_BODY_BYTES:
        raise LimitExceeded(f"the body has {len(text)} bytes; at most {MAX_BODY_BYTES} are taken", field="body")
    escaped = _key_bytes(key) if key else b""
    salt_hex = salt.hex().encode()
    return Draft(
        kind=kind,
        key=key,
        digest=digest_of(kind, key) if key else b"",
        key_bytes=escaped,
        salt=salt_hex,
        body=text,
        commitment=hashlib.sha256(salt_hex + text).hexdigest().encode(),
    )


def _canonical(body: Mapping[str, Any]) -> bytes:
    if not isinstance(body, Mapping):
        raise InvalidRequest("the body is not a JSON object", field="body")
    try:
        return _ENCODER.encode(dict(body)).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        # The error's own text may quote the body.
        raise InvalidRequest(f"the body is not JSON ({type(error).__name__})", field="body") from error


def _key_bytes(key: str) -> bytes:
    if _CONTROL.search(key):
        raise InvalidRequest("the key holds control characters", field="key")
    try:
        plain = key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest("the key is not Unicode", field="key") from error
    if len(plain) > MAX_KEY_BYTES:
        raise LimitExceeded(f"the key has {len(plain)} bytes; at most {MAX_KEY_BYTES} are taken", field="key")
    return plain.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def digest_of(kind: str, key: str) -> bytes:
    """What stands for a key; an entry and a redaction never share one."""
    return hashlib.sha256(f"{kind}\n{key}".encode()).digest()[:20]


def time_bytes(moment: datetime) -> bytes:
    """A moment as lines have it: UTC, microseconds, `Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds").encode() + b"Z"


def line_of(entry: Draft, *, sequence: int, time: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """The entry's line, and its hash as 64 hexadecimal characters.

    Args:
        entry: what is recorded.
        sequence: its number.
        time: as `time_bytes` makes it.
        previous: hash of the entry before it.
    """
    header = b'{"sequence":%d,"time":"%b","kind":"%b","key":"%b","previous":"%b","commitment":"%b"' % (
        sequence,
        time,
        entry.kind.encode(),
        entry.key_bytes,
        previous,
        entry.commitment,
    )
    digest = hashlib.sha256(header).hexdigest().encode()
    return b'%b,"hash":"%b","salt":"%b","body":%b}\n' % (header, digest, entry.salt, entry.body), digest


def parse(line: bytes) -> re.Match[bytes] | None:
    """The parts of a line by name; None when it does not have the form. Says nothing about its hashes."""
    return _LINE.fullmatch(line)


def fault(found: re.Match[bytes]) -> str:
    """What is wrong with a line taken by itself; empty when its hash and commitment fit."""
    if hashlib.sha256(found["header"]).hexdigest().encode() != found["hash"]:
        return "the header does not match its hash"
    salt = found["salt"]
    if salt is not None and hashlib.sha256(salt + found["body"]).hexdigest().encode() != found["commitment"]:
        return "the body does not match its commitment"
    return ""


def redacted_line(found: re.Match[bytes]) -> bytes:
    """The line without salt and body."""
    return found["header"] + b',"hash":"' + found["hash"] + b'","redacted":true}\n'


def key_of(found: re.Match[bytes]) -> str:
    """The key of a line, unescaped."""
    return re.sub(rb"\\(.)", rb"\1", found["key"]).decode("utf-8")


def entry_of(found: re.Match[bytes]) -> Entry:
    """The entry of a line whose hashes fit."""
    body = found["body"]
    return Entry(
        sequence=int(found["sequence"]),
        time=datetime.fromisoformat(found["time"].decode()),
        kind="redaction" if found["kind"] == b"redaction" else "entry",
        key=key_of(found),
        hash=found["hash"].decode(),
        body=None if body is None else json.loads(body),
    )

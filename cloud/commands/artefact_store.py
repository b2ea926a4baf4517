"""What the commands of `podium artefacts` share: opening the registry, who acts, signature files."""

import base64
import binascii
import getpass
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools.artefacts.errors import ArtefactInvalid, ArtefactNotFound
from tools.artefacts.loading import sha256_of_file
from tools.artefacts.records import ONNX, Description, Signature, Who, statement
from tools.artefacts.registry import FOLDER, ArtefactRegistry

if TYPE_CHECKING:
    from tools.artefacts.signing import SigningKey

DATA_HELP = "Data directory; its artefacts/ is worked on directly, also while a server runs."

ByOption = Annotated[
    str, typer.Option("--by", envvar="PODIUM_BY", help="Who you are, for the record; your login name by default.")
]
WhyOption = Annotated[str, typer.Option("--why", help="Why, for the record.")]
ExpectedOption = Annotated[
    str | None, typer.Option("--expected", help="Only if this version is current; for scripts that may race.")
]
KeyOption = Annotated[Path | None, typer.Option("--key", help="Private key to sign with now.")]

_MEDIA_TYPES = {
    ".onnx": ONNX,
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
_MAX_SIGNATURE_BYTES = 262_144
_MAX_KEY_BYTES = 16_384


def opened(data: Path, *, make: bool = False) -> ArtefactRegistry:
    """The registry of a data directory.

    Args:
        data: the data directory.
        make: make the registry if it is not there.

    Raises:
        ArtefactNotFound: there is none, and it is not made.
    """
    if not make and not (data / FOLDER).is_dir():
        raise ArtefactNotFound(
            f"{data} has no artefacts",
            next_step="Check --data; `podium artefacts trust` begins a registry.",
        )
    return ArtefactRegistry(data / FOLDER, clock=lambda: datetime.now(UTC))


def who(by: str, why: str) -> Who:
    """Who acts: as told, or the login name.

    Raises:
        ArtefactInvalid: no name is known, or it is not printable.
    """
    if by:
        return Who(name=by, why=why)
    try:
        return Who(name=getpass.getuser(), why=why)
    except (KeyError, OSError) as error:
        raise ArtefactInvalid("this user has no login name; say who you are with --by", field="by") from error


def media_type_of(path: Path | None) -> str:
    """The media type that a file's name tells."""
    return _MEDIA_TYPES.get("" if path is None else path.suffix.lower(), "application/octet-stream")


def json_object(text: str, name: str) -> dict[str, Any]:
    """A JSON object out of an option: itself, or `@FILE`; '' is an empty one.

    Raises:
        ArtefactInvalid: not readable, or no JSON object.
    """
    if not text:
        return {}
    try:
        content = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        value = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ArtefactInvalid(f"--{name} is not readable JSON: {error}", field=name) from error
    if not isinstance(value, dict):
        raise ArtefactInvalid(f"--{name} is not a JSON object", field=name)
    return value


def read_private_key(path: Path) -> "SigningKey":
    """The private key in a file; others must not be able to read it.

    Raises:
        ArtefactInvalid: not readable, readable by others, or no Ed25519 key.
    """
    from tools.artefacts.signing import read_key

    try:
        with path.open("rb") as file:
            others_may_read = os.fstat(file.fileno()).st_mode & 0o077
            pem = file.read(_MAX_KEY_BYTES)
    except OSError as error:
        raise ArtefactInvalid(f"the key {path} cannot be read: {error.strerror}", field="key") from error
    if others_may_read:
        raise ArtefactInvalid(
            f"the key {path} can be read by others", field="key", next_step=f"Run `chmod 600 {path}` first."
        )
    return read_key(pem)


def signed_by(key: Path | None, description: Description, source: Path) -> list[Signature]:
    """The signature of a file that is added now, or none without a key.

    Raises:
        ArtefactInvalid: the key or the file cannot be read.
    """
    if key is None:
        return []
    from tools.artefacts.signing import sign

    return [sign(read_private_key(key), statement_of(description, source))]


def statement_of(description: Description, source: Path) -> bytes:
    """What a signature of a file is over.

    Raises:
        ArtefactInvalid: the file cannot be read.
    """
    try:
        sha256, size_bytes = sha256_of_file(source)
    except OSError as error:
        raise ArtefactInvalid(f"{source} cannot be read: {error.strerror}", field="file") from error
    return statement(description, sha256=sha256, size_bytes=size_bytes)


def signature_json(signature: Signature, signed: bytes) -> dict[str, Any]:
    """What a signature file holds; the statement is there for people, it is made anew when it is checked."""
    return {
        "key_id": signature.key_id,
        "signature": base64.b64encode(signature.value).decode("ascii"),
        "statement": json.loads(signed),
    }


def signatures_from(paths: Iterable[Path]) -> list[Signature]:
    """Signatures out of files of `podium artefacts sign`.

    Raises:
        ArtefactInvalid: a file is not readable or of another form.
    """
    return [_signature(path) for path in paths]


def _signature(path: Path) -> Signature:
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_SIGNATURE_BYTES))
        key_id, value = content["key_id"], base64.b64decode(content["signature"], validate=True)
    except (OSError, ValueError, KeyError, TypeError, binascii.Error, RecursionError) as error:
        raise ArtefactInvalid(f"{path} is not a signature file: {error}", field="signature") from error
    if not isinstance(key_id, str):
        raise ArtefactInvalid(f"{path} is not a signature file: key_id is not text", field="signature")
    return Signature(key_id=key_id, value=value)

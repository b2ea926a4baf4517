"""What the registry knows of an artefact, and of every move of a current version."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, get_args

from tools.artefacts.errors import ArtefactInvalid
from tools.onnx.trial import trial_inputs

Kind = Literal["agent", "planner", "model", "adapter", "bundle"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Action = Literal["promote", "rollback", "pin", "unpin"]

ONNX = "application/onnx"
"""Media type of what is inspected and tried before it is loaded."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+-]{0,63}")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_PARENTS = 64
_MAX_JSON_BYTES = 64 * 1024
_MAX_NOTE = 4_000


def canonical_json(value: Any) -> bytes:
    """One form for equal values: sorted keys, no spaces, UTF-8; NaN is refused.

    Raises:
        ValueError: a number is not finite, or text is not Unicode.
        TypeError: something is not JSON.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Name:
    """What has versions: a kind and a name within it."""

    kind: Kind
    name: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArtefactInvalid(f"kind {self.kind!r} is not one of {', '.join(KINDS)}", field="kind")
        if not _NAME.fullmatch(self.name):
            raise ArtefactInvalid(
                f"name {self.name[:80]!r} is not 1 to 64 of a-z, 0-9, '_', '.', '-'", field="name"
            )

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Name":
        """Read `KIND/NAME`.

        Raises:
            ArtefactInvalid: another form.
        """
        kind, separator, name = text.partition("/")
        if not separator:
            raise ArtefactInvalid(f"{text[:80]!r} is not KIND/NAME", field="name")
        return cls(kind=kind, name=name)  # type: ignore[arg-type]  # checked by the class itself


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Reference:
    """One version."""

    name: Name
    version: str

    def __post_init__(self) -> None:
        if not _VERSION.fullmatch(self.version):
            raise ArtefactInvalid(
                f"version {self.version[:80]!r} is not 1 to 64 of letters, digits, '_', '.', '+', '-'",
                field="version",
            )

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read `KIND/NAME@VERSION`.

        Raises:
            ArtefactInvalid: another form.
        """
        name, separator, version = text.partition("@")
        if not separator:
            raise ArtefactInvalid(f"{text[:160]!r} is not KIND/NAME@VERSION", field="version")
        return cls(name=Name.parse(name), version=version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What whoever makes an artefact says of it; all of it is signed, and none of it ever changes."""

    reference: Reference
    media_type: str = "application/octet-stream"
    parents: tuple[Reference, ...] = ()
    """Lineage: what it was made from."""
    metrics: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """JSON: how good it was found to be."""
    trial: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """For ONNX: `{input: {"shape", "value"}}` where zeros of the declared shape will not do for its trial."""

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type) or len(self.media_type) > 100:
            raise ArtefactInvalid(f"{self.media_type[:100]!r} is not a media type", field="media_type")
        if len(self.parents) > _MAX_PARENTS:
            raise ArtefactInvalid(f"{len(self.parents)} parents; at most {_MAX_PARENTS}", field="parents")
        for name, value in (("metrics", self.metrics), ("trial", self.trial)):
            _require_small_json(name, value)
        try:
            trial_inputs(self.trial)
        except ValueError as error:
            raise ArtefactInvalid(f"trial: {error}", field="trial") from error


def _require_small_json(name: str, value: Mapping[str, Any]) -> None:
    if not isinstance(value, Mapping) or any(not isinstance(key, str) for key in value):
        raise ArtefactInvalid(f"{name} is not a JSON object", field=name)
    try:
        size = len(canonical_json(dict(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtefactInvalid(f"{name} is not JSON: {error}", field=name) from error
    if size > _MAX_JSON_BYTES:
        raise ArtefactInvalid(f"{name} has {size} bytes; at most {_MAX_JSON_BYTES}", field=name)


def statement(description: Description, *, sha256: str, size_bytes: int) -> bytes:
    """What a signature is over: everything that says what the artefact is, in one canonical form.

    Raises:
        ArtefactInvalid: the hash or the size has another form.
    """
    if not _SHA256.fullmatch(sha256) or size_bytes < 0:
        raise ArtefactInvalid("not a SHA-256 in hexadecimal and a size", field="sha256")
    reference = description.reference
    return canonical_json(
        {
            "podium_artefact": 1,
            "kind": reference.name.kind,
            "name": reference.name.name,
            "version": reference.version,
            "sha256": sha256,
            "size_bytes": size_bytes,
            "media_type": description.media_type,
            "parents": [str(parent) for parent in description.parents],
            "metrics": dict(description.metrics),
            "trial": dict(description.trial),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One key's answer for a statement."""

    key_id: str
    value: bytes
    """Ed25519, 64 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One version as the registry holds it."""

    description: Description
    sha256: str
    size_bytes: int
    package_model: str
    """Name in the committed list of packaged models; '' when the bytes are kept here and need a signature."""
    created_by: str
    created_at: datetime
    note: str
    signatures: tuple[Signature, ...]

    @property
    def reference(self) -> Reference:
        """Kind, name and version."""
        return self.description.reference

    @property
    def statement(self) -> bytes:
        """What its signatures are over."""
        return statement(self.description, sha256=self.sha256, size_bytes=self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who does something, and why; kept for good."""

    name: str
    why: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 200 or not self.name.isprintable():
            raise ArtefactInvalid("say who you are in 1 to 200 printable characters", field="by")
        if len(self.why) > _MAX_NOTE:
            raise ArtefactInvalid(f"the reason is longer than {_MAX_NOTE} characters", field="why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One move of a name's current version, or of its pin."""

    sequence: int
    """Counts over all names of the registry, without a gap."""
    name: Name
    action: Action
    from_version: str | None
    to_version: str
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """Which version of a name is current."""

    name: Name
    version: str
    pinned: bool
    sequence: int
    """Of the change that made it so; compared when it is moved."""

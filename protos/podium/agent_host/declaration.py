"""What an agent promises, read from the manifest that the server has too: name, version, schemas and bounds."""

import hashlib
import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from podium.errors import InvalidRequest
from podium.v1 import agent_pb2

_SIDE_EFFECTS = {
    "none": agent_pb2.SIDE_EFFECTS_NONE,
    "read": agent_pb2.SIDE_EFFECTS_READ,
    "write": agent_pb2.SIDE_EFFECTS_WRITE,
}
_DURATION = re.compile(r"(?:P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?)")
_CLOCK = re.compile(r"(?P<h>\d+):(?P<m>[0-5]\d):(?P<s>[0-5]\d(?:\.\d+)?)")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no spaces, UTF-8: the form that hashes are made of, on both sides.

    Raises:
        ValueError: NaN, infinity, a lone surrogate or a cycle.
        TypeError: it is not JSON.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """An agent as its host knows it."""

    name: str
    version: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    input_sha256: str
    output_sha256: str
    capability_tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    side_effects: str = "none"
    idempotent: bool = False
    """For a write: it may be run again under the same key when nobody knows whether it happened."""
    time_limit: timedelta = timedelta(seconds=30)
    """Of a call that comes without one."""
    max_input_bytes: int = 4_000_000
    max_output_bytes: int = 1_000_000

    @property
    def writes(self) -> bool:
        """Whether it changes the world."""
        return self.side_effects == "write"

    @classmethod
    def of(cls, raw: Mapping[str, Any], *, named: str) -> "Declaration":
        """From the content of a manifest; what a host has no use for (engine, validators, ...) is not looked at.

        Args:
            raw: the fields of a manifest.
            named: what to call it in an error.

        Raises:
            InvalidRequest: a field is missing or has a value it cannot have; the message names it.
        """
        fields = _Fields(raw, named)
        limits, sla = fields.mapping("limits"), fields.mapping("sla")
        input_schema, output_schema = fields.schema("input_schema"), fields.schema("output_schema")
        side_effects = fields.text("side_effects", "none")
        if side_effects not in _SIDE_EFFECTS:
            raise fields.wrong("side_effects", f"is {side_effects!r}; it is one of {', '.join(_SIDE_EFFECTS)}")
        return cls(
            name=fields.text("name"),
            version=fields.text("version"),
            description=fields.text("description", ""),
            input_schema=input_schema,
            output_schema=output_schema,
            input_sha256=fields.sha256("input_schema"),
            output_sha256=fields.sha256("output_schema"),
            capability_tags=fields.texts("capability_tags"),
            requires=fields.texts("requires"),
            side_effects=side_effects,
            idempotent=fields.mapping("settings").get("idempotent") is True,
            time_limit=_Fields(sla, named).duration("timeout", timedelta(seconds=30)),
            max_input_bytes=_Fields(limits, named).size("max_input_bytes", 4_000_000),
            max_output_bytes=_Fields(limits, named).size("max_output_bytes", 1_000_000),
        )

    def to_message(self) -> agent_pb2.AgentDescription:
        """As it travels."""
        message = agent_pb2.AgentDescription(
            name=self.name,
            version=self.version,
            description=self.description,
            input_schema_json=canonical_json(self.input_schema),
            output_schema_json=canonical_json(self.output_schema),
            capability_tags=self.capability_tags,
            requires=self.requires,
            side_effects=_SIDE_EFFECTS[self.side_effects],
            engine="grpc",
            enabled=True,
        )
        message.timeout.FromTimedelta(self.time_limit)
        return message


def read_manifest(path: Path) -> Mapping[str, Any]:
    """The content of a manifest, YAML or JSON.

    Raises:
        InvalidRequest: it cannot be read, is none, or PyYAML is needed and not installed.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else _yaml(path)(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the manifest {path} cannot be read: {error}", field="manifest") from error
    if not isinstance(content, dict):
        raise InvalidRequest(f"the manifest {path} holds no fields", field="manifest")
    return content


def _yaml(path: Path) -> Callable[[str], Any]:
    try:
        # By name: a host whose manifests are JSON has no YAML library, nor has a device.
        yaml = importlib.import_module("yaml")
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"PyYAML is not installed, so the manifest {path} cannot be read",
            next_step="Install pyyaml, or write the manifest as JSON in a file that ends with .json.",
            field="manifest",
        ) from error

    def load(text: str) -> Any:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error

    return load


@dataclass(frozen=True, slots=True)
class _Fields:
    """Reads fields of a manifest and says which one is wrong."""

    raw: Mapping[str, Any]
    named: str

    def wrong(self, name: str, what: str) -> InvalidRequest:
        return InvalidRequest(f"{name} of {self.named} {what}", field=name)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.raw.get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "is missing" if value is None else "is not text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.raw.get(name, ())
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise self.wrong(name, "is not a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.raw.get(name, {})
        if not isinstance(value, Mapping):
            raise self.wrong(name, "is not an object")
        return value

    def schema(self, name: str) -> Mapping[str, Any]:
        value = self.raw.get(name)
        if not isinstance(value, Mapping) or value.get("type") != "object":
            raise self.wrong(name, "is not a JSON Schema of an object")
        if b'"$include":' in self._canonical(name):
            raise self.wrong(name, "includes another file; a host reads manifests that stand by themselves")
        return value

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self._canonical(name)).hexdigest()

    def _canonical(self, name: str) -> bytes:
        try:
            return canonical_json(self.raw[name])
        except (ValueError, TypeError, RecursionError) as error:
            raise self.wrong(name, f"is not JSON: {error}") from error

    def size(self, name: str, default: int) -> int:
        value = self.raw.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.wrong(name, "is not a number of bytes")
        return value

    def duration(self, name: str, default: timedelta) -> timedelta:
        """Seconds, 00:02:00, or ISO 8601 such as PT2M."""
        value = self.raw.get(name)
        if value is None:
            return default
        text = str(value).strip()
        if _NUMBER.fullmatch(text):
            found = timedelta(seconds=float(text))
        elif (match := _CLOCK.fullmatch(text) or _DURATION.fullmatch(text)) is not None:
            parts = {part: float(number or 0) for part, number in match.groupdict().items()}
            days, hours = parts.get("d", 0.0), parts["h"]
            found = timedelta(days=days, hours=hours, minutes=parts["m"], seconds=parts["s"])
        else:
            found = timedelta(0)
        if found <= timedelta(0):
            raise self.wrong(name, f"is {value!r}; give seconds, or a duration such as PT2M")
        return found

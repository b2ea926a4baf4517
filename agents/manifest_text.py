"""Read the YAML of a manifest that anybody may have written: bounded, without surprises, every line known.

Only what is also JSON is taken. Aliases are followed as long as what they stand for stays small; tags, merge keys,
repeated keys and words that YAML reads as something else (`NO`, `12:30`, `2026-07-01`) are refused, with the line.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents.spec import ManifestInvalid, included

MAX_BYTES = 256 * 1024
"""Of a manifest's text."""
MAX_DEPTH = 40
"""Of mappings and lists in each other."""
MAX_VALUES = 20_000
"""Of a manifest with its aliases followed."""
_MAX_FINDINGS = 200

Place = tuple[str | int, ...]
"""Keys and list indices from the top of a manifest to a value."""

_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,29})")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
# libyaml's parser, where PyYAML was built with it: ten times as fast, and it does not recurse.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was noticed about a manifest."""

    code: str
    message: str
    """In words, with what to do about it."""
    path: str = ""
    """Where in the manifest, e.g. `input_schema.properties.city`."""
    line: int = 0
    """From 1; 0 when it concerns the whole."""
    column: int = 0
    fatal: bool = True
    """It refuses the manifest; otherwise it is a warning."""

    def __str__(self) -> str:
        line = f"line {self.line}: " if self.line else ""
        path = f"{self.path}: " if self.path else ""
        return f"{line}{self.code}: {path}{self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestText:
    """A manifest as it was written."""

    value: Any
    """As JSON; None when it could not be read."""
    findings: tuple[Finding, ...]
    lines: Mapping[Place, tuple[int, int]]
    """Line and column of each value, from 1; what was included is at the line that includes it."""

    def finding(self, code: str, message: str, place: Iterable[str | int] = (), *, fatal: bool = True) -> Finding:
        """A finding about a place, with the line of it or of what it is part of."""
        whole = tuple(place)
        near = whole
        while near and near not in self.lines:
            near = near[:-1]
        line, column = self.lines.get(near, (0, 0)) if near else (0, 0)
        return Finding(code=code, message=message, path=spelled(whole), line=line, column=column, fatal=fatal)


def read_manifest(text: str, *, folder: Path | None = None) -> ManifestText:
    """Read a manifest; what is wrong with it are findings, nothing is raised.

    Args:
        text: The manifest.
        folder: Where files that it includes lie. None for one that came over the wire: it may include nothing.
    """
    try:
        size_bytes = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return _unread(
            "YAML_SYNTAX", f"there is a lone surrogate at character {error.start}; write plain UTF-8 text"
        )
    if size_bytes > MAX_BYTES:
        return _unread("TOO_LARGE", f"the manifest has {size_bytes} bytes; keep it under {MAX_BYTES}")
    try:
        if (problem := _shape_problem(text)) is not None:
            return ManifestText(value=None, findings=(problem,), lines={})
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        return _unread("YAML_SYNTAX", f"{_plain(error)}; mend it there", line, column)
    except yaml.YAMLError as error:
        return _unread("YAML_SYNTAX", f"{str(error)[:200]}; write plain UTF-8 text")
    reading = _Reading(folder)
    value = None if node is None else reading.value(node, (), 1)
    if value is None and not reading.findings:  # also for the word null
        return _unread("EMPTY", "there is nothing in it; see docs/architecture.md for what a manifest says")
    return ManifestText(value=value, findings=tuple(reading.findings[:_MAX_FINDINGS]), lines=reading.lines)


def spelled(place: Iterable[str | int]) -> str:
    """A place as findings show it: `handovers[0].parameters`."""
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    return path[:300]


def _unread(code: str, message: str, line: int = 0, column: int = 0) -> ManifestText:
    finding = Finding(code=code, message=message, line=line, column=column)
    return ManifestText(value=None, findings=(finding,), lines={})


def _plain(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(str(part) for part in (error.context, error.problem) if part)[:200] or "this is not YAML"


def _shape_problem(text: str) -> Finding | None:
    """What makes the text too costly to read, found before anything is built from it."""
    depth = values = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        if depth > MAX_DEPTH:
            return Finding(
                code="TOO_DEEP", message=f"nested deeper than {MAX_DEPTH} levels; flatten it", line=line
            )
        if values > MAX_VALUES:
            return Finding(code="TOO_MANY_VALUES", message=f"more than {MAX_VALUES} values", line=line)
    return None


class _TooMuch(Exception):
    """Aliases stand for more than is taken."""


class _Reading:
    """One pass over the nodes of a manifest."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._values = 0
        self.findings: list[Finding] = []
        self.lines: dict[Place, tuple[int, int]] = {}

    def value(self, node: yaml.Node, place: Place, depth: int) -> Any:
        """The node as JSON, or None where there is too much of it."""
        try:
            return self._value(node, place, depth)
        except _TooMuch as error:
            self._say("ALIASES", str(error), node, ())
            return None

    def _value(self, node: yaml.Node, place: Place, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            raise _TooMuch(
                "aliases stand for too many values or for themselves; write the parts out, or use $defs"
            )
        self.lines.setdefault(place, _mark(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != _TAG + kind:
            self._say("YAML_TAG", f"the tag {node.tag[:80]} is not taken; a manifest is plain data", node, place)
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, depth)
        return [self._value(item, (*place, index), depth + 1) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, place: Place, depth: int) -> Any:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, place)
            if key is None:
                continue
            if key in found:
                self._say(
                    "DUPLICATE_KEY", f"{key!r} is there twice; only one could count", key_node, (*place, key)
                )
                continue
            self.lines.setdefault((*place, key), _mark(key_node))
            found[key] = self._value(value_node, (*place, key), depth + 1)
        if "$include" in found:
            return self._included(node, found, place)
        return found

    def _key(self, node: yaml.Node, place: Place) -> str | None:
        if node.tag == _TAG + "merge":
            self._say("YAML_MERGE", "merge keys are not taken; write the fields out, or use $defs", node, place)
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != _TAG + "str":
            shown = node.value[:40] if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            self._say(
                "YAML_KEY",
                f"a key must be text, and YAML reads {shown!r} as something else; quote it",
                node,
                place,
            )
            return None
        return str(node.value)

    def _included(self, node: yaml.Node, found: Mapping[str, Any], place: Place) -> Any:
        if self._folder is None:
            message = "a manifest that is registered stands by itself; write the part out, or use $defs"
            self._say("INCLUDE_REFUSED", message, node, place)
            return None
        try:
            return included(dict(found), self._folder)
        except (ManifestInvalid, OSError, yaml.YAMLError) as error:
            self._say("INCLUDE_MISSING", str(error)[:200], node, place)
            return None

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        text = str(node.value)
        match node.tag.removeprefix(_TAG):
            case "str" | "value":
                return text
            case "null":
                return None
            case "bool" if text in ("true", "false"):
                return text == "true"
            case "int" if _INTEGER.fullmatch(text):
                return int(text)
            case "float" if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
                return float(text)
            case "bool":
                message = f"YAML reads {text!r} as true or false; write true or false, or quote it"
                self._say("YAML_BOOLEAN", message, node, place)
            case "int" | "float":
                message = (
                    f"YAML reads {text[:40]!r} as a number of another form; write a plain number, or quote it"
                )
                self._say("YAML_NUMBER", message, node, place)
            case "timestamp":
                self._say(
                    "YAML_DATE", f"YAML reads {text[:40]!r} as a date, which is not JSON; quote it", node, place
                )
            case _:
                message = f"the tag {node.tag[:80]} is not taken; a manifest is plain data"
                self._say("YAML_TAG", message, node, place)
        return text

    def _say(self, code: str, message: str, node: yaml.Node, place: Place) -> None:
        if len(self.findings) < _MAX_FINDINGS:
            line, column = _mark(node)
            self.findings.append(
                Finding(code=code, message=message, path=spelled(place), line=line, column=column)
            )


def _mark(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1

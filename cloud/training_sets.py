"""Training sets in a data directory: plain folders, named by what they hold.

`training-sets/NAME/VERSION/` has `rows.jsonl` and `manifest.json`; VERSION is the SHA-256 of the rows. A version
never changes. They are folders and not artefacts, because they hold people's words: whoever has to forget somebody
removes a folder, while an artefact's versions stay for ever, and nobody signs what nobody loads.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conductor.training.corrections import rows_bytes, version_of
from podium.errors import DataCorrupt, InvalidRequest, NotFound
from tools.ledger.errors import storage_error

FOLDER = "training-sets"
ROWS = "rows.jsonl"
MANIFEST = "manifest.json"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_SHORTEST = 4


class TrainingSetDamaged(DataCorrupt):
    """A training set's rows are not those that its version names, or its manifest is none."""

    code = "TRAINING_SET_DAMAGED"
    advice = "Remove the folder and build the set again with podium dataset build."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """One version of a set."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def version(self) -> str:
        """SHA-256 of the rows."""
        return str(self.manifest["version"])

    def rows(self) -> tuple[dict[str, Any], ...]:
        """The rows, which are those that the version names.

        Raises:
            TrainingSetDamaged: they are others.
        """
        content = _read(self.folder / ROWS)
        if version_of(content) != self.version:
            raise TrainingSetDamaged(f"{self.folder / ROWS} is not what its version says")
        return tuple(json.loads(line) for line in content.splitlines())


def checked_name(name: str) -> str:
    """A name that a set can have.

    Raises:
        InvalidRequest: it cannot; the message says what can.
    """
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} cannot be the name of a training set",
            next_step="Use up to 64 small letters, digits, _ and -, a letter first.",
            field="name",
        )
    return name


def put(folder: Path, rows: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> TrainingSet:
    """Write a version into a folder of its own; one that is there already is the same and stays as it is.

    Raises:
        InvalidRequest: the folder holds something else.
        StorageFull, InternalError: it cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        there = read_set(folder)
        if there.version != manifest["version"]:
            raise InvalidRequest(
                f"{folder} holds version {there.version[:16]} already", next_step="Name a new folder.", field="out"
            )
        return there
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        beside.mkdir(parents=True, mode=0o700)
        _write(beside / ROWS, rows_bytes(rows))
        text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
        _write(beside / MANIFEST, text.encode() + b"\n")
        # The folder comes into being whole or not at all.
        beside.replace(folder)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise storage_error(error, folder) from error
    return TrainingSet(folder=folder, manifest=manifest)


def stored(data: Path, name: str = "") -> tuple[TrainingSet, ...]:
    """The versions in a data directory, by name, the newest rows first.

    Args:
        data: the data directory.
        name: only versions of this set; all when empty.

    Raises:
        TrainingSetDamaged: a manifest is none.
    """
    folders = sorted((data / FOLDER).glob(f"{name or '*'}/*/{MANIFEST}"))
    found = [read_set(path.parent) for path in folders if not path.parent.name.startswith(".")]
    return tuple(sorted(found, key=_order))


def find(data: Path, reference: str) -> TrainingSet:
    """A version: a folder, a name (its newest), NAME@VERSION, or VERSION; versions by their first characters.

    Raises:
        NotFound: there is none, or more than one.
    """
    folder = Path(reference)
    if (folder / MANIFEST).is_file():
        return read_set(folder)
    name, at, version = reference.partition("@")
    known = stored(data)
    if not at:
        if named := [item for item in known if item.manifest["name"] == reference]:
            return named[0]
        name, version = "", reference
    if len(version) < _SHORTEST:
        raise NotFound(
            f"there is no training set {reference!r}; name at least {_SHORTEST} characters of its version"
        )
    matching = [item for item in known if item.version.startswith(version) and name in ("", item.manifest["name"])]
    if len(matching) != 1:
        many = f"{len(matching)} training sets begin with" if matching else "there is no training set"
        raise NotFound(f"{many} {reference!r} in {data}", next_step="List them: podium dataset list.")
    return matching[0]


def read_set(folder: Path) -> TrainingSet:
    """A version by its folder.

    Raises:
        TrainingSetDamaged: its manifest is none.
    """
    try:
        manifest = json.loads(_read(folder / MANIFEST))
        if not isinstance(manifest["version"], str) or not isinstance(manifest["name"], str):
            raise TypeError("name and version are texts")
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingSetDamaged(f"{folder / MANIFEST} is no manifest: {error}") from error
    return TrainingSet(folder=folder, manifest=manifest)


def _order(item: TrainingSet) -> tuple[str, tuple[int, ...], str]:
    """By name, then the newest rows first."""
    newest = str(item.manifest.get("last_time") or "")
    return (item.manifest["name"], tuple(-ord(letter) for letter in newest), item.version)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TrainingSetDamaged(f"{path} cannot be read: {error.strerror}") from error


def _write(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())

"""What a data directory must have: DATA/contents.json names what was made in it.

A store that finds no file, or an empty one, makes a new one. On a new directory that is right; on one that was in
use it would forget accepted tasks or revocations without a word. So a server notes what it made, before it answers
anybody, and the next one looks before anything is made.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from cloud.auth.files import write_secret
from podium.errors import DataCorrupt

FILE = "contents.json"
KEPT = (
    "artefacts/registry.sqlite",
    "audit",
    "events.sqlite",
    "identity.sqlite",
    "inbox.sqlite",
    "registrations.sqlite",
    "revoked-tokens.json",
)
"""What would be made anew where it is missing, and forget something. Keys are not among them: without the old one,
what it signed is refused. Indexes are not either: they are made anew from what they are of."""
_FORM = 1


class DataMissing(DataCorrupt):
    """A file that a data directory had is gone or empty; whatever was in it would be forgotten."""

    code = "DATA_MISSING"
    advice = "Restore the file from a backup."


def check_contents(data: Path) -> int:
    """Look whether a data directory has what was made in it; how many files that are, 0 where nothing is noted.

    Raises:
        DataMissing: one is gone, or empty.
        DataCorrupt: what was noted cannot be read.
    """
    names = _noted(data)
    for name in names:
        path = data / name
        if not _holds_something(path):
            raise DataMissing(
                f"{path} is {'empty' if path.exists() else 'gone'}; {data / FILE} says that it was there",
                next_step=(
                    f"Restore {name} from a backup, with the files beside it. To go on without what was in it,"
                    f" remove {json.dumps(name)} from {FILE}; the next start makes a new one."
                ),
            )
    return len(names)


def note_contents(data: Path, names: Iterable[str]) -> None:
    """Note that a data directory has files; on disk when this returns. What was noted before stays.

    Args:
        data: the directory, which the caller has locked.
        names: relative to it; those that are still empty are left out.

    Raises:
        DataCorrupt: what was noted cannot be read.
        StorageFull, InternalError: it cannot be written.
    """
    before = _noted(data)
    there = {name for name in names if _holds_something(data / name)}
    if not there <= set(before):
        files = sorted(there.union(before))
        write_secret(data / FILE, json.dumps({"form": _FORM, "files": files}, indent=2).encode() + b"\n")


def _noted(data: Path) -> list[str]:
    path = data / FILE
    try:
        content = json.loads(path.read_bytes())
        if content["form"] != _FORM:
            raise ValueError(f"form {content['form']!r} is not known to this Podium")
        names = content["files"]
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise TypeError("files is not a list of names")
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataCorrupt(
            f"{path} cannot be read: {error}",
            next_step="Restore it from a backup. Without it, nobody notices when another file is missing.",
        ) from error
    return names


def _holds_something(path: Path) -> bool:
    try:
        return any(path.iterdir()) if path.is_dir() else path.stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False

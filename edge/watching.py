"""Watches a folder for scanned documents; remembers what it has handled, so that a restart sends nothing twice."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".pdf"})
STATE_FILE = ".podium-edge.jsonl"
SETTLE_TIME = timedelta(seconds=1)
"""A file must not have changed for this long: a scanner may still be writing it."""
_STALE_LINES = 1000
"""The state file is written anew at the start when so many of its lines are about files that are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A new file, with the mark under which it is remembered."""

    path: Path
    mark: str

    @property
    def name(self) -> str:
        """The file's name for people and messages."""
        return shown_name(self.path)


def shown_name(path: Path) -> str:
    """A file's name as text that can be sent and printed; bytes that are no UTF-8 become question marks."""
    return os.fsencode(path.name).decode("utf-8", "replace")


class FolderSource:
    """New documents of one folder, each reported until it is marked as handled."""

    def __init__(self, folder: Path) -> None:
        """Read what was handled before.

        Raises:
            OSError: the folder cannot be listed, or its state file not be read.
        """
        self._folder = folder
        self._state = folder / STATE_FILE
        self._handled: set[str] = self._load()

    def new_files(self, *, now_s: float) -> list[Found]:
        """Files that are complete and not handled yet, oldest first.

        Args:
            now_s: the file system's clock, seconds since 1970. A file from the future counts as complete: the
                clock of a device without a battery jumps.

        Raises:
            OSError: the folder cannot be listed.
        """
        candidates = []
        present = set()
        for path, stat in _documents(self._folder):
            mark = f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}"
            present.add(mark)
            if not 0 <= now_s - stat.st_mtime < SETTLE_TIME.total_seconds() and mark not in self._handled:
                candidates.append((stat.st_mtime_ns, path.name, Found(path=path, mark=mark)))
        # A device runs for years. An empty listing is not believed: a share that is not mounted looks like one.
        if present:
            self._handled &= present
        return [found for _, _, found in sorted(candidates, key=lambda item: item[:2])]

    def handled(self, found: Found, outcome: str) -> None:
        """Remember that a file needs nothing more; `outcome` is its task id or why it was refused.

        Raises:
            OSError: that cannot be written, e.g. on a full disk; it is remembered until the process ends.
        """
        self._handled.add(found.mark)
        # One line a file, whatever there was before: thousands of files must not wear a memory card out.
        with self._state.open("ab") as file:
            # The line end comes first, so that a line torn by a power cut spoils no other.
            file.write(b"\n" + _line(found.mark, outcome))
            file.flush()
            os.fsync(file.fileno())

    def _load(self) -> set[str]:
        outcomes = dict(self._noted())
        present = {f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}" for path, stat in _documents(self._folder)}
        if present and len(outcomes) - len(present & outcomes.keys()) > _STALE_LINES:
            outcomes = {mark: outcome for mark, outcome in outcomes.items() if mark in present}
            # Written beside and renamed: a power cut leaves the old state or the new one.
            temporary = self._state.with_suffix(".tmp")
            with temporary.open("wb") as file:
                file.write(b"\n".join(_line(mark, outcome) for mark, outcome in outcomes.items()))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._state)
        return set(outcomes)

    def _noted(self) -> Iterator[tuple[str, str]]:
        try:
            lines = self._state.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                entry = json.loads(line)
                yield str(entry["mark"]), str(entry["outcome"])
            except (ValueError, KeyError, TypeError):
                # A line that is not whole means a file is read again; the cloud knows it by its observation id.
                continue


def _documents(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            try:
                if entry.is_file():
                    yield path, entry.stat()
            except FileNotFoundError:
                continue  # It was moved away in between.


def _line(mark: str, outcome: str) -> bytes:
    # ASCII: a file's name may hold bytes that are no UTF-8.
    return json.dumps({"mark": mark, "outcome": outcome}).encode("ascii")

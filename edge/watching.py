"""Watches a folder for scanned documents; remembers what it has handled, so that a restart sends nothing twice."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".pdf"})
STATE_FILE = ".podium-edge.json"
SETTLE_TIME = timedelta(seconds=1)
"""A file must not have changed for this long: a scanner may still be writing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A new file, with the mark under which it is remembered."""

    path: Path
    mark: str


class FolderSource:
    """New documents of one folder, each reported until it is marked as handled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = folder / STATE_FILE
        self._handled: dict[str, str] = self._load()

    def new_files(self, *, now_s: float) -> Iterator[Found]:
        """Files that are complete and not handled yet, oldest first.

        Args:
            now_s: the file system's clock, seconds since 1970. A file from the future counts as complete: the
                clock of a device without a battery jumps.
        """
        candidates = []
        for path in self._folder.iterdir():
            if path.name.startswith(".") or path.suffix.lower() not in SUFFIXES or not path.is_file():
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue  # It was moved away in between.
            age_s = now_s - stat.st_mtime
            if 0 <= age_s < SETTLE_TIME.total_seconds():
                continue
            mark = f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}"
            if mark not in self._handled:
                candidates.append((stat.st_mtime_ns, Found(path=path, mark=mark)))
        for _, found in sorted(candidates, key=lambda item: item[0]):
            yield found

    def handled(self, found: Found, outcome: str) -> None:
        """Remember that a file needs nothing more; `outcome` is its task id or why it was refused."""
        self._handled[found.mark] = outcome
        # Written beside and renamed: a power cut leaves the old state or the new one, never half of one.
        temporary = self._state.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(self._handled, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._state)

    def _load(self) -> dict[str, str]:
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            # Unreadable state means files are read again; the cloud knows them by their observation ids.
            return {}
        return {str(mark): str(outcome) for mark, outcome in state.items()} if isinstance(state, dict) else {}

"""The file that grows: bytes are on disk when `append` returns, or not in the file at all."""

import os
from collections.abc import Callable
from pathlib import Path

from tools.ledger.segments import segment_path

Sync = Callable[[int], None]

# Linux can leave out the file's times; what is needed to find the bytes again is synced either way.
sync_data: Sync = getattr(os, "fdatasync", os.fsync)


def sync_folder(folder: Path) -> None:
    """Press a folder's names to disk: a new or renamed file is otherwise lost in a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SegmentFile:
    """The last segment, open for appending."""

    def __init__(self, path: Path, *, size: int, sync: Sync) -> None:
        """Open a segment.

        Args:
            path: the file; made when it is not there.
            size: how many bytes of it are good; what is beyond them is cut off.
            sync: presses a file to disk.
        """
        self.path = path
        self.size = size
        self._sync = sync
        is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._unsure = False
        try:
            if os.fstat(self._descriptor).st_size != size:
                self.restore()
            if is_new:
                sync_folder(path.parent)
        except BaseException:
            os.close(self._descriptor)
            if is_new:
                # Left empty it would claim to follow an entry that the file before it may yet grow beyond.
                path.unlink()
            raise

    @classmethod
    def following(cls, folder: Path, first: int, sync: Sync) -> "SegmentFile":
        """Begin a new segment whose first entry has this number."""
        return cls(segment_path(folder, first), size=0, sync=sync)

    def append(self, data: bytes) -> None:
        """Write and sync.

        Raises:
            OSError: nothing of it is in the file, unless `restore` fails too.
        """
        if self._unsure:
            self.restore()
        self._unsure = True
        try:
            rest = memoryview(data)
            at = self.size
            while rest:
                written = os.pwrite(self._descriptor, rest, at)
                rest, at = rest[written:], at + written
            self._sync(self._descriptor)
        except OSError:
            self.restore()
            raise
        self.size += len(data)
        self._unsure = False

    def restore(self) -> None:
        """Cut off what is beyond the good bytes."""
        os.ftruncate(self._descriptor, self.size)
        self._sync(self._descriptor)
        self._unsure = False

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

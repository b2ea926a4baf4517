"""Ledgers with little in them, and salts that can be told apart."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.clock import FakeClock
from tools.ledger.ledger import Ledger


class CountingEntropy:
    """Bytes that differ at every call and are the same in every run."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, size: int) -> bytes:
        self.calls += 1
        return self.calls.to_bytes(size, "big")


def open_ledger(folder: Path, *, clock: Callable[[], Any] | None = None, **options: Any) -> Ledger:
    """A ledger with a clock that stands still."""
    return Ledger(folder, clock=clock or FakeClock(), **{"entropy": CountingEntropy(), **options})


def segment_files(folder: Path) -> list[Path]:
    """Its files, in order."""
    return sorted(folder.glob("*.jsonl"))


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """No file of this process can grow beyond a size: for a file, what a full disk is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

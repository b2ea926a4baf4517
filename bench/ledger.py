"""Entries a second into a ledger, each on disk when its appender goes on, beside SQLite with the same promise.

Contenders, each with the same number of threads that append one entry at a time and wait for it:

ledger            `tools.ledger`: threads that wait together share a write and an fsync
sqlite            a table in WAL mode, synchronous=FULL, a connection for each thread, a transaction for each entry
sqlite-shared     the same, but one connection and one thread that commits for all that wait, as `cloud/bus` does

and `many`: one caller that hands over 1,000 entries at a time (`append_many`; `executemany` in one transaction).
Entries are audit entries of about 180 bytes with an idempotency key that is looked up.
"""

import argparse
import json
import queue
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measuring import machine, synced_writes_s
from tools.ledger.ledger import Item, Ledger
from tools.ledger.reading import verify

AT_ONCE = (1, 8, 64)
MANY = 1000
_INSERT = "INSERT INTO entries (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
_TABLE = """CREATE TABLE IF NOT EXISTS entries (
  sequence INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL
)"""

Append = Callable[[str, dict[str, Any]], None]
AppendMany = Callable[[list[tuple[str, dict[str, Any]]]], None]


def main() -> None:
    """Measure, print a table on stderr and, with --json, one object on stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.ledger", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short rounds, under 30 s")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every contender in turn (default 3)")
    parser.add_argument("--folder", type=Path, help="where the files are written (default: the temporary folder)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    arguments = parser.parse_args()
    round_s = 0.5 if arguments.quick else 2.0
    with tempfile.TemporaryDirectory(prefix="podium-bench-", dir=arguments.folder) as folder:
        disk: list[float] = []
        rates = _measured(Path(folder), arguments.rounds, round_s, disk)
        medians = {name: round(statistics.median(rounds)) for name, rounds in rates.items()}
        report = {
            "machine": machine(),
            "fsync_ms": round(statistics.median(disk) * 1000, 3),
            "entries_per_s": medians,
            "ratios": _ratios(medians),
            "rounds": {name: [round(one) for one in rounds] for name, rounds in rates.items()},
            "verify_entries_per_s": _verified(Path(folder)),
        }
    _table(report)
    if arguments.json:
        print(json.dumps(report))


def _measured(folder: Path, rounds: int, round_s: float, disk: list[float]) -> dict[str, list[float]]:
    """Every contender in turn, round after round: a moment in which the machine is busy meets all of them."""
    rates: dict[str, list[float]] = {}
    contenders = {"ledger": _ledger, "sqlite": _sqlite, "sqlite-shared": _sqlite_shared}
    for number in range(rounds):
        for name, opened in contenders.items():
            here = folder / f"{name}-{number}"
            here.mkdir()
            _say(f"round {number + 1} of {rounds}: {name}")
            with opened(here) as (append, append_many):
                for at_once in AT_ONCE:
                    rate = _one_by_one(append, at_once, round_s, f"{at_once}")
                    rates.setdefault(f"{name} {at_once}", []).append(rate)
                if append_many is not None:
                    rates.setdefault(f"{name} many", []).append(_in_lots(append_many, round_s))
            disk += synced_writes_s(folder)
    return rates


def _one_by_one(append: Append, at_once: int, round_s: float, label: str) -> float:
    counts = [0] * at_once
    start = threading.Barrier(at_once + 1)
    failures: list[Exception] = []

    def run(name: int) -> None:
        start.wait()
        until = time.perf_counter() + round_s
        try:
            while time.perf_counter() < until:
                key = f"{label}/{name}/{counts[name]}"
                append(key, _body(key))
                counts[name] += 1
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that measures
            failures.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in range(at_once)]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - started)


def _in_lots(append_many: AppendMany, round_s: float) -> float:
    done, started = 0, time.perf_counter()
    while time.perf_counter() < started + round_s:
        append_many([(key, _body(key)) for key in (f"many/{done + number}" for number in range(MANY))])
        done += MANY
    return done / (time.perf_counter() - started)


def _body(key: str) -> dict[str, Any]:
    return {
        "action": "sql.read",
        "at": "2026-11-29T12:00:00+00:00",
        "caller": "anna",
        "details": {"rows": 12, "sha256": "9f" * 16, "table": "sales"},
        "task_id": key,
    }


Opened = Iterator[tuple[Append, AppendMany | None]]


@contextmanager
def _ledger(folder: Path) -> Opened:
    with Ledger(folder, clock=lambda: datetime.now(UTC)) as ledger:

        def append(key: str, body: dict[str, Any]) -> None:
            ledger.append(body, key=key)

        def append_many(pairs: list[tuple[str, dict[str, Any]]]) -> None:
            ledger.append_many([Item(body=body, key=key) for key, body in pairs])

        yield append, append_many


def _connected(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        folder / "entries.sqlite", isolation_level=None, check_same_thread=False, timeout=60
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(_TABLE)
    return connection


@contextmanager
def _sqlite(folder: Path) -> Opened:
    own = threading.local()
    with ExitStack() as open_ones:

        def connection() -> sqlite3.Connection:
            if not hasattr(own, "connection"):
                own.connection = _connected(folder)
                open_ones.callback(own.connection.close)
            return own.connection  # type: ignore[no-any-return]  # a thread-local is not typed

        def append(key: str, body: dict[str, Any]) -> None:
            connection().execute(_INSERT, (key, json.dumps(body)))

        def append_many(pairs: list[tuple[str, dict[str, Any]]]) -> None:
            here = connection()
            here.execute("BEGIN IMMEDIATE")
            here.executemany(_INSERT, [(key, json.dumps(body)) for key, body in pairs])
            here.execute("COMMIT")

        yield append, append_many


@contextmanager
def _sqlite_shared(folder: Path) -> Opened:
    connection = _connected(folder)
    jobs: queue.SimpleQueue[tuple[str, str, Future[None]] | None] = queue.SimpleQueue()

    def commit() -> None:
        while (first := jobs.get()) is not None:
            group = [first]
            while not jobs.empty():
                following = jobs.get()
                if following is None:
                    jobs.put(None)
                    break
                group.append(following)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, [(key, body) for key, body, _ in group])
            connection.execute("COMMIT")
            for _, _, told in group:
                told.set_result(None)

    def append(key: str, body: dict[str, Any]) -> None:
        told: Future[None] = Future()
        jobs.put((key, json.dumps(body), told))
        told.result()

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield append, None
    finally:
        jobs.put(None)
        thread.join()
        connection.close()


def _verified(folder: Path) -> int:
    """Entries a second that `verify` checks, all bytes of them."""
    ledger = folder / "ledger-0"
    started = time.perf_counter()
    found = verify(ledger)
    if found.damage is not None:
        raise AssertionError(found.damage)
    return round(found.head.sequence / (time.perf_counter() - started))


def _ratios(rates: dict[str, int]) -> dict[str, float]:
    """The ledger's rate over that of each peer with as many threads."""
    ratios = {}
    for name, rate in rates.items():
        peer, _, at_once = name.rpartition(" ")
        if peer != "ledger":
            ratios[f"ledger/{peer} {at_once}"] = round(rates[f"ledger {at_once}"] / rate, 2)
    return ratios


def _table(report: dict[str, Any]) -> None:
    on = report["machine"]
    _say(f"{on['system']}, {on['cores']} cores, Python {on['python']}, load {on['load_1min']}")
    _say(f"a synced write of 8 KiB takes {report['fsync_ms']} ms")
    for name, rate in report["entries_per_s"].items():
        _say(f"{name:20} {rate:>8,} entries/s   rounds {report['rounds'][name]}")
    for name, ratio in report["ratios"].items():
        _say(f"{name:28} {ratio:>6}")
    _say(f"verify               {report['verify_entries_per_s']:>8,} entries/s")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()

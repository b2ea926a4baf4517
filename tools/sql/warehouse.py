"""A DuckDB file that can only be read: one cursor a query, bounded time, rows and memory."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import duckdb

from tools.sql.errors import (
    SqlCancelled,
    SqlFailed,
    SqlOutOfMemory,
    SqlRefused,
    SqlTimeout,
    Violation,
    WarehouseMissing,
)
from tools.sql.values import Value, plain, snapshot_sha256

Parameters = Mapping[str, Value] | Sequence[Value] | None
"""Values for `$name` placeholders (a mapping) or for `?` placeholders (a sequence)."""

# An interrupt that arrives before the engine starts is forgotten by it, so it is repeated until the call ends.
_INTERRUPT_EVERY_S = 0.01
_EXPLAIN_TIMEOUT = timedelta(seconds=10)
_CELL_TYPES = (bool, int, float, Decimal, str, date, datetime)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """What a query gave.

    Attributes:
        columns: Column names, in order.
        types: DuckDB type names of the columns, e.g. `DECIMAL(38,4)`.
        rows: Cells as Python values; DECIMAL is `Decimal`, DATE is `date`, nothing is rounded.
        row_count: Number of rows here, after truncation.
        truncated: Whether the query had more than `max_rows` rows.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    row_count: int
    truncated: bool

    @property
    def snapshot_sha256(self) -> str:
        """SHA-256 of the rows as canonical JSON, in hex."""
        return snapshot_sha256(self.rows)

    def records(self) -> list[dict[str, Value]]:
        """Rows as mappings from column name to cell."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def as_json(self) -> dict[str, object]:
        """The result for a JSON document: Decimals and dates as strings, see `tools.sql.values.plain`."""
        return {
            "columns": list(self.columns),
            "types": list(self.types),
            "rows": [[plain(cell) for cell in row] for row in self.rows],
            "row_count": self.row_count,
            "truncated": self.truncated,
            "snapshot_sha256": self.snapshot_sha256,
        }


class Stop:
    """A way to end a running query from another thread, or from a task that was cancelled."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._wake: list[threading.Event] = []
        self._lock = threading.Lock()

    @property
    def asked(self) -> bool:
        """Whether `now` was called."""
        return self._asked.is_set()

    def now(self) -> None:
        """End every query that was given this object, and any that starts later."""
        with self._lock:
            self._asked.set()
            for event in self._wake:
                event.set()

    def wakes(self, event: threading.Event) -> None:
        """Set `event` when the stop is asked for; at once if it was already."""
        with self._lock:
            self._wake.append(event)
            if self._asked.is_set():
                event.set()

    def forgets(self, event: threading.Event) -> None:
        """No longer set `event`: its query has ended."""
        with self._lock:
            self._wake.remove(event)


class Warehouse:
    """A DuckDB database, opened so that no statement can change it, reach a file or reach the network.

    Safe to share between threads: every call uses its own cursor.
    """

    def __init__(self, path: Path, *, memory_limit_mb: int = 256) -> None:
        """Open the file.

        Args:
            path: An existing DuckDB database.
            memory_limit_mb: What all queries together may hold; past it a query fails, nothing spills to disk.

        Raises:
            WarehouseMissing: The file is not there or is not a database.
        """
        self.path = path
        if not path.is_file():
            raise WarehouseMissing(str(path), "no such file")
        config: dict[str, str | bool | int | float | list[str]] = {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "allow_community_extensions": "false",
            "memory_limit": f"{memory_limit_mb}MB",
            "max_temp_directory_size": "0KB",
            "threads": "1",
            "python_enable_replacements": "false",  # a table name must not find a Python variable
            "lock_configuration": "true",
        }
        try:
            self._connection = duckdb.connect(str(path), read_only=True, config=config)
        except duckdb.Error as error:
            raise WarehouseMissing(str(path), _first_line(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; later calls fail."""
        self._connection.close()

    def tables(self) -> dict[str, dict[str, str]]:
        """Every table with its columns and their types, `{"city": {"city_code": "VARCHAR"}}`."""
        found = self.query(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
            " ORDER BY table_name, column_index",
            max_rows=100_000,
            timeout=_EXPLAIN_TIMEOUT,
        )
        tables: dict[str, dict[str, str]] = {}
        for table, column, kind in found.rows:
            tables.setdefault(str(table), {})[str(column)] = str(kind)
        return tables

    def explain(self, sql: str, params: Parameters = None) -> str:
        """The physical plan, without running the statement; proves that it parses, binds and plans.

        Raises:
            SqlRefused: It is not exactly one SELECT.
            SqlFailed: The engine cannot plan it.
        """
        with self._running(_EXPLAIN_TIMEOUT, Stop()) as cursor:
            _demand_one_select(cursor, sql)
            plan = cursor.execute("EXPLAIN " + sql, cast("object", params)).fetchall()
        return "\n".join(str(text) for _, text in plan)

    def query(
        self, sql: str, params: Parameters = None, *, max_rows: int, timeout: timedelta, stop: Stop | None = None
    ) -> QueryResult:
        """Run one SELECT.

        Args:
            sql: The statement; the caller has passed it through `tools.sql.guard`.
            params: Values for its placeholders.
            max_rows: Rows to return at most; more sets `truncated`.
            timeout: Time for planning, running and fetching together.
            stop: Ends the query early from another thread.

        Raises:
            SqlRefused: It is not exactly one SELECT by the engine's own parser.
            SqlTimeout: The time was up.
            SqlCancelled: `stop` was asked for.
            SqlOutOfMemory: It needs more memory than it may have.
            SqlFailed: The engine reported an error.
        """
        with self._running(timeout, stop or Stop()) as cursor:
            _demand_one_select(cursor, sql)
            cursor.execute(sql, cast("object", params))
            described = cursor.description or []
            fetched = cursor.fetchmany(max_rows + 1)
        rows = tuple(tuple(_cell(cell) for cell in row) for row in fetched[:max_rows])
        return QueryResult(
            columns=tuple(str(column[0]) for column in described),
            types=tuple(str(column[1]) for column in described),
            rows=rows,
            row_count=len(rows),
            truncated=len(fetched) > max_rows,
        )

    @contextmanager
    def _running(self, timeout: timedelta, stop: Stop) -> Iterator[duckdb.DuckDBPyConnection]:
        if stop.asked:
            raise SqlCancelled
        try:
            cursor = self._connection.cursor()
        except duckdb.Error as error:
            raise SqlFailed(_first_line(error), next_step="Open the warehouse again.") from error
        woken, finished = threading.Event(), threading.Event()
        stop.wakes(woken)
        watcher = threading.Thread(
            target=_interrupt_when_due, args=(cursor, timeout, woken, finished), name="sql-watch", daemon=True
        )
        watcher.start()
        try:
            yield cursor
        except duckdb.InterruptException as error:
            raise SqlCancelled if stop.asked else SqlTimeout(after=timeout) from error
        except duckdb.OutOfMemoryException as error:
            raise SqlOutOfMemory(_first_line(error)) from error
        except duckdb.Error as error:
            raise SqlFailed(_first_line(error)) from error
        finally:
            finished.set()
            woken.set()
            watcher.join()
            stop.forgets(woken)
            cursor.close()


def _interrupt_when_due(
    cursor: duckdb.DuckDBPyConnection, timeout: timedelta, woken: threading.Event, finished: threading.Event
) -> None:
    woken.wait(timeout.total_seconds())
    while not finished.wait(_INTERRUPT_EVERY_S):
        cursor.interrupt()


def _demand_one_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        fault = Violation(code="unprintable", message="the text holds half a character", fragment=ascii(sql[:40]))
        raise SqlRefused([fault]) from error
    statements = cursor.extract_statements(sql)
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name for kind in kinds) or "nothing"
        raise SqlRefused(
            [
                Violation(
                    code="not_one_select", message=f"the engine reads {found}, not one SELECT", fragment=sql[:80]
                )
            ]
        )


def _cell(value: object) -> Value:
    if value is None or isinstance(value, _CELL_TYPES):
        return value
    raise SqlFailed(
        f"a column holds {type(value).__name__}, which has no exact JSON form.",
        next_step="Select numbers, text, dates or timestamps.",
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]

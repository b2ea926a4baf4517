"""Build a DuckDB file from rows: the only place that opens a warehouse for writing."""

import csv
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tools.sql.values import Value, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """One table to build.

    Attributes:
        name: Table name.
        columns: `(name, DuckDB type)` of every column, in order.
        key: Names of the primary key's columns.
        rows: Its rows, cells in column order; text must not be empty.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    key: Sequence[str]
    rows: Iterable[Sequence[Value]]


def write_database(path: Path, tables: Sequence[TableSource]) -> None:
    """Write a database with these tables to `path`, replacing it in one step when it is complete.

    A reader that has the old file open keeps it; two builders at once leave one whole file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        draft = Path(folder) / "draft.duckdb"
        with duckdb.connect(str(draft)) as connection:
            for table in tables:
                # Rows go through a CSV file: inserting them one by one takes minutes.
                rows = Path(folder) / f"{table.name}.csv"
                _write_csv(rows, table)
                _load_csv(connection, table, rows)
            connection.execute("CHECKPOINT")
        os.replace(draft, path)


def _write_csv(path: Path, table: TableSource) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([plain(cell) for cell in row] for row in table.rows)


def _load_csv(connection: duckdb.DuckDBPyConnection, table: TableSource, rows: Path) -> None:
    # No foreign keys: DuckDB builds an index for each, which triples the size of the file.
    columns = ", ".join(f"{_quoted(name)} {kind} NOT NULL" for name, kind in table.columns)
    connection.execute(f"CREATE TABLE {_quoted(table.name)} ({columns})")
    kinds = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in table.columns)
    order = ", ".join(_quoted(name) for name in table.key)
    connection.execute(
        f"INSERT INTO {_quoted(table.name)} SELECT * FROM"  # noqa: S608 - names come from the program, quoted
        f" read_csv({_text(str(rows))}, header = false, columns = {{{kinds}}}) ORDER BY {order}"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

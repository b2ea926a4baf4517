import shutil
import threading
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from podium.errors import PodiumError
from tools.sql.errors import (
    SqlCancelled,
    SqlFailed,
    SqlOutOfMemory,
    SqlRefused,
    SqlTimeout,
    WarehouseMissing,
)
from tools.sql.values import snapshot_sha256
from tools.sql.warehouse import QueryResult, Stop, Warehouse

ENDLESS = "SELECT SUM(a.n * b.n) FROM range(100000000) AS a(n), range(100000000) AS b(n)"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def ask(warehouse: Warehouse, sql: str, params: object = None, max_rows: int = 100) -> QueryResult:
    return warehouse.query(sql, params, max_rows=max_rows, timeout=MINUTE)  # type: ignore[arg-type]  # both kinds


def test_values_come_back_exactly(shop: Warehouse) -> None:
    result = ask(shop, "SELECT price, sold_on, branch_code, pieces, NULL AS gap FROM sale WHERE receipt = 901")
    assert result.rows == ((Decimal("200.00"), date(2027, 1, 1), "b1", 1, None),)
    assert result.columns == ("price", "sold_on", "branch_code", "pieces", "gap")
    assert result.types[:4] == ("DECIMAL(8,2)", "DATE", "VARCHAR", "INTEGER")
    assert result.as_json()["rows"] == [["200.00", "2027-01-01", "b1", 1, None]]


def test_parameters_by_name_and_by_position(shop: Warehouse) -> None:
    by_name = ask(shop, "SELECT price FROM sale WHERE sold_on >= $day", {"day": date(2027, 1, 1)})
    by_position = ask(shop, "SELECT price FROM sale WHERE sold_on >= ?", [date(2027, 1, 1)])
    assert by_name.rows == by_position.rows
    assert by_name.row_count == 2


def test_a_cut_result_says_so(shop: Warehouse) -> None:
    cut = ask(shop, "SELECT receipt FROM sale ORDER BY receipt, line", max_rows=5)
    assert (cut.row_count, cut.truncated) == (5, True)
    whole = ask(shop, "SELECT area_code FROM area", max_rows=2)
    assert (whole.row_count, whole.truncated) == (2, False)


def test_the_snapshot_names_the_rows(shop: Warehouse) -> None:
    one = ask(shop, "SELECT price FROM sale WHERE receipt = 901")
    same = ask(shop, "SELECT price AS p FROM sale WHERE receipt = 901 AND line = 1")
    other = ask(shop, "SELECT price FROM sale WHERE receipt = 902")
    assert one.snapshot_sha256 == same.snapshot_sha256 == snapshot_sha256([[Decimal("200.00")]])
    assert one.snapshot_sha256 != other.snapshot_sha256


def test_a_slow_query_is_stopped_and_the_next_one_runs(shop: Warehouse) -> None:
    with pytest.raises(SqlTimeout) as stopped:
        shop.query(ENDLESS, max_rows=1, timeout=timedelta(milliseconds=50))
    assert "0.05 s" in str(stopped.value)
    assert ask(shop, "SELECT 1").rows == ((1,),)


def test_a_query_is_cancelled_from_another_thread(shop: Warehouse) -> None:
    stop = Stop()
    threading.Timer(0.05, stop.now).start()
    with pytest.raises(SqlCancelled):
        shop.query(ENDLESS, max_rows=1, timeout=MINUTE, stop=stop)
    with pytest.raises(SqlCancelled):  # what was stopped stays stopped
        shop.query("SELECT 1", max_rows=1, timeout=MINUTE, stop=stop)


def test_cancelling_one_query_leaves_another_alone(shop: Warehouse) -> None:
    stop = Stop()
    found: list[QueryResult] = []
    counting = "SELECT COUNT(*) FROM range(20000000) AS a(n) WHERE n % 7 = 3"
    other = threading.Thread(target=lambda: found.append(ask(shop, counting)))
    threading.Timer(0.02, stop.now).start()
    other.start()
    with pytest.raises(SqlCancelled):
        shop.query(ENDLESS, max_rows=1, timeout=MINUTE, stop=stop)
    other.join()
    assert found[0].row_count == 1


def test_explain_plans_without_running(shop: Warehouse) -> None:
    assert "sale" in shop.explain("SELECT SUM(price) FROM sale WHERE sold_on > $day", {"day": date(2026, 1, 1)})
    with pytest.raises(SqlFailed, match="no_such"):
        shop.explain("SELECT no_such FROM sale")
    assert shop.explain(ENDLESS)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE sale",
        "INSERT INTO area VALUES ('x', 'y')",
        "WITH gone AS (DELETE FROM sale RETURNING *) SELECT * FROM gone",
        "WITH more AS (INSERT INTO area VALUES ('x', 'y') RETURNING *) SELECT * FROM more",
        "CREATE TEMP TABLE t AS SELECT 1",
        "SET threads = 4",
        "SELECT 1; DROP TABLE sale",
        "COPY sale TO '/tmp/never.csv'",
        "ATTACH '/tmp/never.duckdb'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA database_list",
        "CHECKPOINT",
        "EXPLAIN ANALYZE SELECT 1",
        "",
    ],
)
def test_the_engine_itself_refuses_what_a_guard_might_miss(shop: Warehouse, sql: str) -> None:
    before = ask(shop, "SELECT COUNT(*), SUM(price) FROM sale").rows
    with pytest.raises((SqlRefused, SqlFailed)):
        ask(shop, sql)
    assert ask(shop, "SELECT COUNT(*), SUM(price) FROM sale").rows == before


def test_a_python_variable_is_not_a_table(shop: Warehouse) -> None:
    frame = {"word": [1, 2]}
    with pytest.raises(SqlFailed):
        ask(shop, "SELECT * FROM frame")
    assert frame


def test_memory_is_bounded(shop_path: Path, tmp_path: Path) -> None:
    # Its own copy: DuckDB opens one file with one configuration in a process.
    path = Path(shutil.copy(shop_path, tmp_path / "copy.duckdb"))
    with Warehouse(path, memory_limit_mb=16) as small, pytest.raises(SqlOutOfMemory):
        ask(small, "SELECT COUNT(DISTINCT n) FROM range(20000000) AS a(n)")


def test_a_type_without_an_exact_form_is_refused(shop: Warehouse) -> None:
    with pytest.raises(SqlFailed, match="list"):
        ask(shop, "SELECT [1, 2]")


@pytest.mark.parametrize("content", [None, b"", b"not a database at all" * 300])
def test_a_file_that_is_no_database_is_reported(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.duckdb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WarehouseMissing) as missing:
        Warehouse(path)
    assert isinstance(missing.value, PodiumError)
    assert missing.value.next_step


def test_half_a_character_is_refused(shop: Warehouse) -> None:
    with pytest.raises(SqlRefused):
        ask(shop, "SELECT '\ud800'")
    with pytest.raises(SqlFailed):
        ask(shop, "SELECT $word", {"word": "\ud800"})


def test_a_closed_warehouse_says_so(shop_path: Path, tmp_path: Path) -> None:
    warehouse = Warehouse(Path(shutil.copy(shop_path, tmp_path / "copy.duckdb")))
    warehouse.close()
    with pytest.raises(SqlFailed, match="closed"):
        ask(warehouse, "SELECT 1")


def test_tables_lists_columns_with_types(shop: Warehouse) -> None:
    assert shop.tables()["area"] == {"area_code": "VARCHAR", "area_name": "VARCHAR"}

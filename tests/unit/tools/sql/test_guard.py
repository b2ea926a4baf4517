from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.sql.errors import SqlRefused
from tools.sql.guard import Allowed, check, require

SCHEMA = {
    "sale": {"receipt": "BIGINT", "sold_on": "DATE", "branch_code": "VARCHAR", "price": "DECIMAL(8,2)"},
    "branch": {"branch_code": "VARCHAR", "area_code": "VARCHAR"},
}

HARMLESS = [
    "SELECT branch_code, SUM(price) FROM sale GROUP BY branch_code ORDER BY 2 DESC LIMIT 3",
    "WITH a AS (SELECT branch_code AS c, SUM(price) AS q FROM sale GROUP BY 1) SELECT c, q FROM a WHERE q > $x",
    "FROM sale",
    "SELECT * FROM branch;",
    "SELECT s.*, b.area_code FROM sale s LEFT JOIN branch b ON s.branch_code = b.branch_code",
    "SELECT SUM(price) AS q FROM sale HAVING q > 3",
    "SELECT Branch_Code FROM BRANCH",
    'SELECT "branch_code" FROM "branch"',
    "SELECT branch_code FROM branch UNION ALL SELECT branch_code FROM sale ORDER BY branch_code",
    "SELECT area_code FROM branch WHERE EXISTS (SELECT 1 FROM sale s WHERE s.branch_code = branch.branch_code)",
    "SELECT x.c FROM (SELECT branch_code AS c FROM branch) AS x",
    "SELECT COUNT(*) FROM sale -- a comment; DROP TABLE sale",
    "(SELECT branch_code FROM branch) LIMIT 1",
    "WITH a AS (SELECT * FROM branch) SELECT area_code FROM a",
    "SELECT branch_code, RANK() OVER (PARTITION BY area_code ORDER BY branch_code) n FROM branch QUALIFY n < 2",
    "SELECT EXTRACT(year FROM sold_on), DATE_TRUNC('month', sold_on), sold_on + INTERVAL 1 MONTH FROM sale",
    "SELECT SUM(price) FILTER (WHERE price > 3) FROM sale WHERE sold_on BETWEEN ? AND ?",
    "SELECT n FROM branch JOIN (SELECT branch_code, COUNT(*) AS n FROM sale GROUP BY ALL) x USING (branch_code)",
    "SELECT '华东; DROP TABLE sale' AS r, COUNT(*) FROM branch WHERE area_code = '北京'",
]

# (statement, a code that must be among its violations)
HOSTILE = [
    ("DROP TABLE sale", "not_a_select"),
    ("SELECT 1; DROP TABLE sale", "not_one_statement"),
    ("SELECT 1;;DELETE FROM sale", "not_one_statement"),
    ("SELECT * FROM sale; --\nDROP TABLE sale", "not_one_statement"),
    ("compare sales of east'; DROP TABLE sale; --", "unreadable"),
    ("DELETE FROM sale", "not_a_select"),
    ("UPDATE sale SET price = 0", "not_a_select"),
    ("INSERT INTO branch VALUES ('x', 'y')", "not_a_select"),
    ("MERGE INTO sale USING branch ON TRUE WHEN MATCHED THEN DELETE", "not_a_select"),
    ("TRUNCATE sale", "not_a_select"),
    ("ALTER TABLE sale DROP COLUMN price", "not_a_select"),
    ("CREATE TABLE t AS SELECT * FROM sale", "not_a_select"),
    ("CREATE TEMP VIEW v AS SELECT 1", "not_a_select"),
    ("CREATE OR REPLACE MACRO sum(x) AS 0", "not_a_select"),
    ("CREATE MACRO t() AS TABLE SELECT * FROM sale", "not_a_select"),
    ("CREATE SEQUENCE q", "not_a_select"),
    ("CREATE SECRET s (TYPE s3)", "not_a_select"),
    ("COPY sale TO '/tmp/never.csv'", "not_a_select"),
    ("COPY (SELECT * FROM sale) TO '/tmp/never.parquet'", "not_a_select"),
    ("EXPORT DATABASE '/tmp/never'", "unreadable"),
    ("IMPORT DATABASE '/tmp/never'", "unreadable"),
    ("ATTACH '/tmp/never.duckdb' AS other", "not_a_select"),
    ("DETACH shop", "not_a_select"),
    ("USE memory", "not_a_select"),
    ("INSTALL httpfs", "not_a_select"),
    ("LOAD httpfs", "not_a_select"),
    ("PRAGMA database_list", "not_a_select"),
    ("SET threads = 4", "not_a_select"),
    ("RESET threads", "not_a_select"),
    ("CALL pragma_version()", "not_a_select"),
    ("CHECKPOINT", "not_a_select"),
    ("VACUUM", "not_a_select"),
    ("BEGIN TRANSACTION", "not_a_select"),
    ("PREPARE p AS SELECT 1", "not_a_select"),
    ("EXECUTE p", "not_a_select"),
    ("EXPLAIN ANALYZE DELETE FROM sale", "not_a_select"),
    ("DESCRIBE sale", "not_a_select"),
    ("SUMMARIZE sale", "not_a_select"),
    ("SHOW TABLES", "not_a_select"),
    ("VALUES (1)", "not_a_select"),
    ("PIVOT sale ON branch_code USING SUM(price)", "not_a_select"),
    ("UNPIVOT sale ON price INTO NAME n VALUE v", "not_a_select"),
    ("WITH x AS (INSERT INTO branch VALUES ('a', 'b') RETURNING *) SELECT * FROM x", "syntax_not_allowed"),
    ("WITH x AS (DELETE FROM sale RETURNING *) SELECT * FROM x", "syntax_not_allowed"),
    ("WITH x AS (UPDATE sale SET price = 0 RETURNING *) SELECT * FROM x", "syntax_not_allowed"),
    ("WITH x AS (SELECT 1) DELETE FROM sale", "not_a_select"),
    ("SELECT * INTO copy_of FROM sale", "syntax_not_allowed"),
    ("SELECT * FROM sale FOR UPDATE", "syntax_not_allowed"),
    ("SELECT * FROM read_text('/etc/passwd')", "table_function"),
    ("SELECT * FROM read_csv('/etc/passwd')", "table_function"),
    ("SELECT * FROM read_csv_auto('/etc/passwd')", "table_function"),
    ("SELECT * FROM read_parquet('s3://bucket/x')", "table_function"),
    ("SELECT * FROM read_json('x.json')", "table_function"),
    ("SELECT * FROM read_blob('/etc/passwd')", "table_function"),
    ("FROM read_text('/etc/passwd') SELECT content", "table_function"),
    ("SELECT * FROM glob('/*')", "table_function"),
    ("SELECT * FROM sniff_csv('x')", "table_function"),
    ("SELECT * FROM query('DROP TABLE sale')", "table_function"),
    ("SELECT * FROM query_table('secret')", "table_function"),
    ("SELECT * FROM duckdb_settings()", "table_function"),
    ("SELECT * FROM pragma_table_info('sale')", "table_function"),
    ("SELECT * FROM range(1000000000000)", "function_not_allowed"),
    ("SELECT UNNEST(GENERATE_SERIES(1, 1000000000))", "function_not_allowed"),
    ("SELECT * FROM 'data.csv'", "file_table"),
    ('SELECT * FROM "/etc/passwd"', "file_table"),
    ("FROM 'data.parquet'", "file_table"),
    ("SELECT * FROM sale JOIN 'https://host/x.csv' ON TRUE", "file_table"),
    ("SELECT getenv('HOME')", "function_not_allowed"),
    ("SELECT current_setting('memory_limit')", "function_not_allowed"),
    ("SELECT nextval('q')", "function_not_allowed"),
    ("SELECT price.getenv('HOME') FROM sale", "function_not_allowed"),
    ("SELECT system.main.getenv('HOME')", "function_not_allowed"),
    ("SELECT write_log('x')", "function_not_allowed"),
    ("SELECT LIST_TRANSFORM([1], x -> getenv('HOME'))", "function_not_allowed"),
    ("SELECT 'HOME'.getenv()", "function_not_allowed"),
    ("SELECT REPEAT('x', 1000000000)", "function_not_allowed"),
    ("SELECT * FROM information_schema.tables", "system_catalog"),
    ("SELECT * FROM duckdb_tables", "system_catalog"),
    ("SELECT * FROM pg_catalog.pg_class", "system_catalog"),
    ("SELECT * FROM sqlite_master", "system_catalog"),
    ("SELECT * FROM main.sale", "qualified_table"),
    ("SELECT * FROM other.main.sale", "qualified_table"),
    ("SELECT * FROM secret", "unknown_table"),
    ("SELECT (SELECT word FROM secret)", "unknown_table"),
    ("SELECT * FROM branch, secret AS branch", "unknown_table"),
    ("SELECT * FROM (WITH secret AS (SELECT 1 AS a) SELECT a FROM secret) x, secret", "unknown_table"),
    ("SELECT * FROM branch, LATERAL (SELECT word FROM secret) l", "unknown_table"),
    ("SELECT * FROM branch WHERE area_code IN (SELECT word FROM secret)", "unknown_table"),
    ("SELECT 1 FROM branch UNION SELECT word FROM secret", "unknown_table"),
    ("SELECT 1 ORDER BY (SELECT word FROM secret)", "unknown_table"),
    ("WITH a AS (SELECT 1), b AS (SELECT * FROM c), c AS (SELECT 1) SELECT * FROM b", "unknown_table"),
    ("SELECT salary FROM sale", "unknown_column"),
    ("SELECT salary AS salary FROM sale", "unknown_column"),
    ("SELECT s.salary FROM sale s", "unknown_column"),
    ("SELECT rowid FROM sale", "unknown_column"),
    ("SELECT sale FROM sale", "unknown_column"),
    ("SELECT x.a FROM (SELECT branch_code FROM branch) x", "unknown_column"),
    ("SELECT COLUMNS('.*') FROM sale", "function_not_allowed"),
    ("SELECT * EXCLUDE (price) FROM sale", "syntax_not_allowed"),
    ("SELECT * REPLACE (0 AS price) FROM sale", "syntax_not_allowed"),
    ("SELECT * FROM sale USING SAMPLE 5", "syntax_not_allowed"),
    ("SELECT * FROM sale TABLESAMPLE 5%", "syntax_not_allowed"),
    ("SELECT * FROM sale POSITIONAL JOIN branch WHERE @x = 1", "syntax_not_allowed"),
    ("WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT a FROM r", "syntax_not_allowed"),
    ("SELECT CAST(price AS BLOB) FROM sale", "type_not_allowed"),
    ("SELECT price::JSON FROM sale", "type_not_allowed"),
    ("ｓｅｌｅｃｔ 1", "not_ascii"),
    ("SELECT 1; DRΟP TABLE sale", "not_ascii"),
    ("SELECT price FROM ѕale", "not_ascii"),
    ("SELECT\u00a0price FROM sale", "unprintable"),
    ("SELECT price FROM sale\u200b", "unprintable"),
    ("SELECT price FROM sale\x00; DROP TABLE sale", "unprintable"),
    ("SELECT '\ud800'", "unprintable"),
    ("/* outer /* inner */ still */ DROP TABLE sale", "not_a_select"),
    ("SELECT 1 /* never closed", "unreadable"),
    ("SELECT 'never closed", "unreadable"),
    ("", "not_one_statement"),
    ("-- only a comment", "not_one_statement"),
    (";;", "not_one_statement"),
    ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "too_deep"),
    ("SELECT " + "NOT " * 3000 + "TRUE", "too_deep"),
    ("SELECT " + "1 + " * 3000 + "1", "too_deep"),
    ("SELECT " + "CASE WHEN TRUE THEN " * 60 + "1" + " END" * 60, "too_deep"),
    ("SELECT " + "1, " * 20_000 + "1", "too_long"),
]


@pytest.mark.parametrize("sql", HARMLESS)
def test_questions_pass(sql: str) -> None:
    assert check(sql, schema=SCHEMA) == []


@pytest.mark.parametrize(("sql", "code"), HOSTILE, ids=[sql[:60] for sql, _ in HOSTILE])
def test_hostile_statements_are_refused_for_the_right_reason(sql: str, code: str) -> None:
    assert code in [violation.code for violation in check(sql, schema=SCHEMA)]


def test_every_violation_is_listed_once() -> None:
    sql = "SELECT getenv('A'), salary, getenv('A') FROM sale, secret, read_text('/x'); DROP TABLE sale"
    violations = check(sql, schema=SCHEMA)
    assert {violation.code for violation in violations} == {
        "not_one_statement",
        "function_not_allowed",
        "table_function",
        "unknown_table",
        "not_a_select",
        "syntax_not_allowed",
    }
    assert len(set(violations)) == len(violations)
    assert "salary" in str(check("SELECT salary, wage FROM sale", schema=SCHEMA))
    assert len(check("SELECT salary, wage FROM sale", schema=SCHEMA)) == 2


def test_what_runs_has_no_comment_and_no_second_statement() -> None:
    text = require("SELECT price /* ; DROP TABLE sale */ FROM sale; -- and more", schema=SCHEMA)
    assert text == "SELECT price FROM sale"
    with pytest.raises(SqlRefused) as refused:
        require("SELECT 1; DROP TABLE sale", schema=SCHEMA)
    assert refused.value.violations[0].code == "not_one_statement"
    assert refused.value.evidence


def test_the_function_list_can_be_shortened() -> None:
    only_sums = Allowed(functions=frozenset({"sum"}))
    assert check("SELECT SUM(price) FROM sale", schema=SCHEMA, allowed=only_sums) == []
    [violation] = check("SELECT AVG(price) FROM sale", schema=SCHEMA, allowed=only_sums)
    assert violation.code == "function_not_allowed"


@pytest.fixture(scope="module")
def writable() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database without any of the protections of a Warehouse: only the guard stands before it."""
    with duckdb.connect(config={"enable_external_access": "false", "memory_limit": "200MB"}) as connection:
        connection.execute(
            "CREATE TABLE sale (receipt BIGINT, sold_on DATE, branch_code VARCHAR, price DECIMAL(8,2))"
        )
        connection.execute("INSERT INTO sale VALUES (1, DATE '2026-01-01', 'b1', 2.50)")
        connection.execute("CREATE TABLE branch (branch_code VARCHAR, area_code VARCHAR)")
        connection.execute("INSERT INTO branch VALUES ('b1', 'a1')")
        connection.execute("CREATE TABLE secret (word VARCHAR)")
        connection.execute("INSERT INTO secret VALUES ('sesame')")
        connection.execute("CREATE SEQUENCE q")
        yield connection


def state_of(connection: duckdb.DuckDBPyConnection) -> list[object]:
    questions = (
        "SELECT * FROM sale ORDER BY ALL",
        "SELECT * FROM branch ORDER BY ALL",
        "SELECT * FROM secret ORDER BY ALL",
        "SELECT database_name FROM duckdb_databases() ORDER BY ALL",
        "SELECT table_name, sql FROM duckdb_tables() ORDER BY ALL",
        "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL",
        "SELECT last_value FROM duckdb_sequences()",
        "SELECT name, value FROM duckdb_settings() ORDER BY ALL",
    )
    return [connection.execute(question).fetchall() for question in questions]


FRAGMENTS = [
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "WITH x AS",
        "(",
        ")",
        ",",
        ";",
        "*",
        "--",
        "/*",
        "*/",
        "\n",
        "'",
        '"',
        "$$",
        "::",
    ),
    *(
        "sale",
        "branch",
        "secret",
        "price",
        "branch_code",
        "word",
        "x",
        "1",
        "'b1'",
        "TRUE",
        "=",
        "AS",
        "UNION ALL",
    ),
    *(
        "DROP TABLE sale",
        "DELETE FROM sale",
        "RETURNING *",
        "INSERT INTO branch VALUES ('x','y')",
        "LATERAL",
        "JOIN",
    ),
    *(
        "UPDATE sale SET price = 0",
        "CREATE TABLE t AS",
        "nextval('q')",
        "query('SELECT 1')",
        "SET threads = 2",
        "COPY",
    ),
    *(
        "CREATE MACRO m() AS 1",
        "ATTACH ':memory:' AS m",
        "INTO t",
        "PIVOT",
        "ON TRUE",
        "GROUP BY ALL",
        "ORDER BY 1",
    ),
    *(
        "COUNT(*)",
        "SUM(price)",
        "read_text('/etc/passwd')",
        "EXISTS",
        "IN",
        "CASE WHEN",
        "THEN",
        "END",
        "ｓale",
        "\u00a0",
    ),
]
WORDS = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14).map(" ".join)


@st.composite
def spliced(draw: st.DrawFn) -> str:
    """A statement with pieces of others put in at random places."""
    text = draw(st.sampled_from([*HARMLESS, *(sql for sql, _ in HOSTILE if len(sql) < 200)]))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from([*FRAGMENTS, *HARMLESS])) + text[place:]
    return text


EXPRESSIONS = [
    *(
        "price",
        "branch_code",
        "COUNT(*)",
        "SUM(price)",
        "'b1'",
        "1",
        "NULL",
        "(SELECT MAX(price) FROM sale)",
        "x.y",
    ),
    *(
        "CASE WHEN price > 1 THEN 1 END",
        "CAST(price AS VARCHAR)",
        "branch_code || 'x'",
        "RANK() OVER (ORDER BY 1)",
    ),
    *("nextval('q')", "getenv('HOME')", "(SELECT word FROM secret)", "word", "current_setting('threads')", "*"),
    *(
        "EXISTS (SELECT 1 FROM secret)",
        "query('DROP TABLE sale')",
        "(DELETE FROM sale)",
        "secret",
        "sale",
        "rowid",
    ),
]
SOURCES = [
    *(
        "sale",
        "branch",
        "sale NATURAL JOIN branch",
        "(SELECT * FROM branch) AS sale",
        "sale, branch AS b",
        "sale AS x",
    ),
    *("(FROM sale)", "secret", "query_table('secret')", "(VALUES (1)) AS sale(price)", "main.secret", "'x.csv'"),
    *(
        "sale JOIN secret ON TRUE",
        "sale, LATERAL (SELECT word AS price FROM secret)",
        "(SELECT word AS price FROM secret)",
    ),
]
PRELUDES = [
    *(
        "",
        "",
        "",
        "WITH x AS (SELECT 1 AS y) ",
        "WITH sale AS (SELECT * FROM branch) ",
        "/* DROP */ ",
        "SELECT 1; ",
    ),
    *("WITH x AS (DELETE FROM sale RETURNING *) ", "WITH secret AS (SELECT 1 AS word) ", "EXPLAIN ANALYZE "),
    *(
        "WITH sale AS (SELECT * FROM secret) ",
        "CREATE TABLE t AS ",
        "INSERT INTO branch ",
        "WITH RECURSIVE x AS (FROM x) ",
    ),
]
TAILS = [
    *(
        "",
        "",
        " WHERE {}",
        " GROUP BY ALL",
        " ORDER BY {}",
        " LIMIT 1",
        " -- end",
        " HAVING {} > 1",
        " QUALIFY {} > 1",
    ),
    *(
        "; DROP TABLE sale",
        " UNION SELECT {} FROM {}",
        " FOR UPDATE",
        " USING SAMPLE 1",
        " WINDOW w AS (ORDER BY {})",
    ),
]


@st.composite
def composed(draw: st.DrawFn) -> str:
    """A statement that mostly parses, of parts of which some are hostile."""
    tail = draw(st.sampled_from(TAILS))
    if tail.count("{}") == 2:
        tail = tail.format(draw(st.sampled_from(EXPRESSIONS)), draw(st.sampled_from(SOURCES)))
    tail = tail.format(draw(st.sampled_from(EXPRESSIONS))) if "{}" in tail else tail
    prelude, source = draw(st.sampled_from(PRELUDES)), draw(st.sampled_from(SOURCES))
    return f"{prelude}SELECT {draw(st.sampled_from(EXPRESSIONS))} FROM {source}{tail}"


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=st.one_of(WORDS, spliced(), composed(), composed()))
def test_nothing_that_passes_can_change_a_writable_database_or_see_the_secret(
    writable: duckdb.DuckDBPyConnection, sql: str
) -> None:
    if check(sql, schema=SCHEMA):
        return
    before = state_of(writable)
    for text in (sql, require(sql, schema=SCHEMA)):
        try:
            rows = writable.execute(text).fetchall()
        except duckdb.Error:
            continue  # what cannot run changes nothing
        assert "sesame" not in str(rows)
    assert state_of(writable) == before


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=120))
def test_any_text_gets_an_answer(text: str) -> None:
    assert isinstance(check(text, schema=SCHEMA), list)
    assert isinstance(check(f"SELECT {text} FROM sale", schema=SCHEMA), list)

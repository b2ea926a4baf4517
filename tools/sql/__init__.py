"""Ask a DuckDB warehouse questions safely: guard, semantic layer, read-only engine, independent recomputation.

`duckdb` is imported only by `tools.sql.warehouse` (reading) and `tools.sql.loading` (building a file).
"""

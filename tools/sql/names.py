"""Which table and column each name of a statement means, and whether they are known."""

from collections.abc import Iterator, Mapping

from sqlglot import ErrorLevel, exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from tools.sql.errors import Violation

Schema = Mapping[str, Mapping[str, str]]
"""Known tables, each with its columns and their types, names in lower case."""

_SYSTEM_PREFIXES = ("information_schema", "pg_", "duckdb_", "sqlite_", "pragma_")
_FILE_MARKS = "./\\:*?"


def unknown_names(tree: exp.Query, schema: Schema) -> Iterator[Violation]:
    """Every table and column of the statement that is not in the schema.

    Args:
        tree: The statement, its identifiers in lower case.
        schema: What may be named.
    """
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for node in scope.walk():
            if isinstance(node, exp.Table):
                seen.add(id(node))
                if len(node.parts) > 1 or node.name not in scope.cte_sources:
                    yield from _table_faults(node, schema)
            elif isinstance(node, exp.Column):
                yield from _column_faults(node, scope, schema)
    for table in tree.find_all(exp.Table):
        if id(table) not in seen:
            yield _fault("unresolved_table", f"{table.name or 'a table'} stands where none is expected", table)


def fragment(node: exp.Expr) -> str:
    """The SQL of a node, to show in a violation."""
    return node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE)


def _table_faults(table: exp.Table, schema: Schema) -> Iterator[Violation]:
    if not isinstance(table.this, exp.Identifier):
        yield _fault("table_function", "a function is used as a table", table)
        return
    path = [part.name for part in table.parts]
    if any(name.startswith(_SYSTEM_PREFIXES) for name in path):
        yield _fault("system_catalog", f"{'.'.join(path)} belongs to the database system", table)
    elif len(path) > 1:
        yield _fault(
            "qualified_table", f"{'.'.join(path)} names a schema or database; use the bare table name", table
        )
    elif any(mark in table.name for mark in _FILE_MARKS):
        yield _fault("file_table", f"{table.name!r} looks like a file", table)
    elif table.name not in schema:
        yield _fault(
            "unknown_table", f"there is no table {table.name!r}; known: {', '.join(sorted(schema))}", table
        )


def _column_faults(column: exp.Column, scope: Scope, schema: Schema) -> Iterator[Violation]:
    is_star = isinstance(column.this, exp.Star)
    for visible in _visible_scopes(scope):
        sources = {name: source for name, (_, source) in visible.selected_sources.items()}
        if column.table:
            if column.table not in sources:
                continue
            columns = _columns_of(sources[column.table], schema)
            if not is_star and columns is not None and column.name not in columns:
                known = ", ".join(sorted(columns))
                yield _fault(
                    "unknown_column", f"{column.table} has no column {column.name!r}; known: {known}", column
                )
            return
        every = [_columns_of(source, schema) for source in sources.values()]
        if any(columns is None or column.name in columns for columns in every):
            return
    if not column.table and column.name in _aliases_visible_to(column, scope, schema):
        return
    name = f"{column.table}.{column.name}" if column.table else column.name
    yield _fault("unknown_column", f"no table here has a column {name!r}", column)


def _visible_scopes(scope: Scope) -> Iterator[Scope]:
    """The scope, and for a subquery in an expression those around it; a derived table sees only itself."""
    current: Scope | None = scope
    while current is not None:
        yield current
        current = current.parent if current.is_subquery else None


def _aliases_visible_to(column: exp.Column, scope: Scope, schema: Schema) -> set[str]:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        return _columns_of(scope, schema) or set()
    node: exp.Expr = column
    while node.parent is not None and node.parent is not query:
        node = node.parent
    # DuckDB lets every clause but the projections themselves use their aliases.
    if node.arg_key == "expressions" or not isinstance(query, exp.Query):
        return set()
    return set(query.named_selects)


def _columns_of(source: exp.Expr | Scope, schema: Schema) -> set[str] | None:
    """Names that a source gives, or None where its table is unknown and reported already."""
    if isinstance(source, Scope):
        return _columns_of_query(source, schema)
    known = schema.get(source.name)
    return None if known is None else set(known)


def _columns_of_query(scope: Scope, schema: Schema) -> set[str] | None:
    query = scope.expression
    if scope.set_operation_scopes:
        return _columns_of(scope.set_operation_scopes[0], schema)
    if not isinstance(query, exp.Query):
        return set()
    names: set[str] = set()
    for projection in query.selects:
        if not projection.is_star:
            names.add(projection.alias_or_name)
            continue
        of = projection.table if isinstance(projection, exp.Column) else ""
        for name, (_, source) in scope.selected_sources.items():
            if of and name != of:
                continue
            columns = _columns_of(source, schema)
            if columns is None:
                return None
            names |= columns
    return names


def _fault(code: str, message: str, node: exp.Expr) -> Violation:
    return Violation(code=code, message=message, fragment=fragment(node)[:80])

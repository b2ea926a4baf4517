"""Decide whether a statement may run: one SELECT over known tables, columns and functions, and nothing else.

The guard is an allow-list: a node of the syntax tree that `tools.sql.grammar` does not list is refused. It is the
first of three lines; the engine's own parser must agree (`Warehouse.query`), and the file is opened read-only.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp, parse, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.tokenizer_core import Token, TokenType

from tools.sql.errors import SqlRefused, Violation
from tools.sql.grammar import CAST_TYPES, FUNCTIONS, PARTS, STRUCTURE
from tools.sql.names import Schema, fragment, unknown_names

# sqlglot warns of syntax it does not know; the violation says so already, and stderr is for progress.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_QUOTING = {TokenType.STRING, TokenType.IDENTIFIER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What a statement may use.

    Attributes:
        functions: DuckDB names of functions, out of those in `tools.sql.grammar.FUNCTIONS`.
        max_characters: Length of the text.
        max_tokens: Words and signs in it.
        max_nesting: Depth of brackets and CASEs.
        max_depth: Depth of the syntax tree.
    """

    functions: frozenset[str] = frozenset(FUNCTIONS.values())
    max_characters: int = 50_000
    max_tokens: int = 15_000
    max_nesting: int = 24
    max_depth: int = 120


def check(sql: str, *, schema: Schema, allowed: Allowed | None = None) -> list[Violation]:
    """Every reason why the statement must not run; none if it may.

    Args:
        sql: The statement, from whomever.
        schema: Tables and columns that may be read, names in lower case.
        allowed: Functions and sizes that are accepted.
    """
    _, violations = _examine(sql, schema, allowed or Allowed())
    return violations


def require(sql: str, *, schema: Schema, allowed: Allowed | None = None) -> str:
    """The statement rewritten from its syntax tree, without comments: what was checked is what runs.

    Raises:
        SqlRefused: It must not run; every reason is listed.
    """
    tree, violations = _examine(sql, schema, allowed or Allowed())
    if violations or tree is None:
        raise SqlRefused(violations)
    return tree.sql(dialect="duckdb", comments=False)


def _examine(sql: str, schema: Schema, allowed: Allowed) -> tuple[exp.Expr | None, list[Violation]]:
    if len(sql) > allowed.max_characters:
        return None, [_violation("too_long", f"{len(sql)} characters, at most {allowed.max_characters}", sql)]
    try:
        tokens = tokenize(sql, dialect="duckdb")
        if faults := [*_text_faults(sql, tokens), *_size_faults(tokens, allowed)]:
            return None, faults
        statements = [
            tree for tree in parse(sql, dialect="duckdb") if tree and not isinstance(tree, exp.Semicolon)
        ]
        violations = [fault for tree in statements for fault in _tree_faults(tree, schema, allowed)]
    except SqlglotError as error:
        return None, [_violation("unreadable", str(error).split("\n", 1)[0], sql)]
    except RecursionError:
        return None, [_violation("too_deep", "the statement is nested too deeply to be read", sql)]
    if len(statements) != 1:
        violations.insert(0, _violation("not_one_statement", f"{len(statements)} statements, not one", sql))
        return None, _distinct(violations)
    return statements[0], _distinct(violations)


def _text_faults(sql: str, tokens: list[Token]) -> Iterator[Violation]:
    """Letters that look like others, and invisible signs: two parsers may read them differently."""
    if any(not character.isprintable() and character not in "\t\n\r" for character in sql):
        yield _violation("unprintable", "the text holds a character that cannot be seen", sql)
    for token in tokens:
        if token.token_type not in _QUOTING and not token.text.isascii():
            yield _violation("not_ascii", f"{token.text!r} is outside quotes and not ASCII", token.text)


def _size_faults(tokens: list[Token], allowed: Allowed) -> Iterator[Violation]:
    if len(tokens) > allowed.max_tokens:
        yield _violation("too_long", f"{len(tokens)} words and signs, at most {allowed.max_tokens}", "")
    depth = deepest = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        deepest = max(deepest, depth)
    if deepest > allowed.max_nesting:
        yield _violation("too_deep", f"brackets nest {deepest} deep, at most {allowed.max_nesting}", "")


def _tree_faults(tree: exp.Expr, schema: Schema, allowed: Allowed) -> Iterator[Violation]:
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        kind = tree.name if isinstance(tree, exp.Command) else tree.key
        yield _violation("not_a_select", f"a {kind.upper()} statement is not a SELECT", tree)
    if (depth := _depth(tree)) > allowed.max_depth:
        yield _violation("too_deep", f"the syntax tree is {depth} deep, at most {allowed.max_depth}", tree)
    for node in tree.walk():
        yield from _node_faults(node, allowed)
    if isinstance(tree, exp.Query):
        try:
            yield from unknown_names(normalize_identifiers(tree.copy(), dialect="duckdb"), schema)
        except SqlglotError as error:
            yield _violation("names_unclear", str(error).split("\n", 1)[0], tree)


def _node_faults(node: exp.Expr, allowed: Allowed) -> Iterator[Violation]:
    kind = type(node)
    if kind in FUNCTIONS:
        if FUNCTIONS[kind] not in allowed.functions:
            yield _violation("function_not_allowed", f"{FUNCTIONS[kind]}() is not allowed here", node)
    elif kind not in STRUCTURE:
        if isinstance(node, exp.Func):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name().lower()
            yield _violation("function_not_allowed", f"{name}() is not allowed", node)
        else:
            yield _violation("syntax_not_allowed", f"{node.key.upper()} is not allowed", node)
    if kind in PARTS and (
        extra := sorted(key for key, part in node.args.items() if part and key not in PARTS[kind])
    ):
        parts = ", ".join(key.strip("_") for key in extra)
        yield _violation("syntax_not_allowed", f"{node.key.upper()} with {parts} is not allowed", node)
    if isinstance(node, exp.DataType) and node.this not in CAST_TYPES:
        yield _violation("type_not_allowed", f"{node.sql(dialect='duckdb')} is not a type to cast to", node)


def _depth(tree: exp.Expr) -> int:
    deepest = 0
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in node.iter_expressions())
    return deepest


def _violation(code: str, message: str, about: str | exp.Expr) -> Violation:
    text = about if isinstance(about, str) else fragment(about)
    return Violation(code=code, message=message, fragment=text[:80])


def _distinct(violations: list[Violation]) -> list[Violation]:
    return list(dict.fromkeys(violations))

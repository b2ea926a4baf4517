"""Log lines hold texts of ours, names, codes and hashes; nothing that came with a request or from an agent."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agents", "cloud", "conductor", "edge", "federation", "tools", "protos/podium")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
SAYS = {"message", "evidence", "next_step", "reason", "text", "description", "args", "inputs", "detail"}
"""Attributes that hold what others may have written; of an exception the log keeps the kind (log_lines.py)."""


def _log_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id.lower() in {"_log", "log", "logger", "logging"}
        ):
            yield node


def _faults(source: str) -> list[str]:
    found = []
    for call in _log_calls(ast.parse(source)):
        if not (call.args and isinstance(call.args[0], ast.Constant)):
            found.append(f"{call.lineno}: its text is not fixed")
        for given in call.args[1:]:
            for node in ast.walk(given):
                if isinstance(node, ast.Attribute) and node.attr in SAYS:
                    found.append(f"{call.lineno}: logs .{node.attr}")
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in {"str", "repr"}
                ):
                    found.append(f"{call.lineno}: logs what {node.func.id}() says")
    return found


def test_no_log_call_holds_a_foreign_text() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    calls = sum(len(list(_log_calls(ast.parse(path.read_text())))) for path in paths)
    assert calls > 40, "the calls are found"
    faults = {str(path.relative_to(ROOT)): found for path in paths if (found := _faults(path.read_text()))}
    assert not faults


@pytest.mark.parametrize(
    "call", ['_LOG.info("%s", error.message)', '_LOG.info(f"{name}")', '_log.error("%s", str(error))']
)
def test_a_foreign_text_would_be_found(call: str) -> None:
    assert _faults(call)

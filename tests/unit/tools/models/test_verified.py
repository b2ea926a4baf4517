"""Nothing but sealed bytes reaches a runtime, and only two modules may seal."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[4]
PACKAGES = ("agents", "cloud", "conductor", "edge", "federation", "tools", "protos/podium", "bench")


def callers(name: str) -> set[str]:
    """Modules that use a function or class of that name."""
    found = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                called = node.func if isinstance(node, ast.Call) else None
                if name in (getattr(called, "id", None), getattr(called, "attr", None)):
                    found.add(path.relative_to(ROOT).as_posix())
    return found


def test_only_the_committed_list_and_a_signature_answer_for_bytes() -> None:
    assert callers("answered_for") == {"tools/models/pinned.py", "tools/artefacts/loading.py"}
    assert callers("VerifiedContent") == {"tools/models/verified.py"}


def test_a_session_is_made_of_sealed_bytes_only() -> None:
    assert callers("InferenceSession") == {"tools/onnx/session.py"}
    assert callers("open_session") == {"tools/onnx/model.py", "tools/onnx/trial_child.py"}

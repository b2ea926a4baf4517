"""The function that a manifest names: found, or refused with a typed error whatever its module does."""

import sys
from pathlib import Path

import pytest

from agents.callables import resolve
from agents.spec import ManifestInvalid

MODULES = {
    "cut_short": ("def f(:\n", r"invalid syntax \(odd_cut_short.py, line 1\)"),
    "no_text": ("\0", "cannot be imported"),
    "raises": ("raise KeyError('Erika')\n", "KeyError"),
    "leaves": ("import sys; sys.exit(3)\n", "SystemExit"),
    "lacks": ("import no_such_module_at_all\n", "no_such_module_at_all"),
    "empty": ("", "has no attribute 'f'"),
    "number": ("f = 1\n", "is not a function"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_cannot_be_used_is_the_manifests_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, words = MODULES[name]
    (tmp_path / f"odd_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(ManifestInvalid, match=words):
            resolve(f"odd_{name}:f")
    finally:
        sys.modules.pop(f"odd_{name}", None)


def test_a_function_is_found_and_a_name_of_another_form_is_not() -> None:
    assert resolve("agents.callables:resolve") is resolve
    for name in ("agents.callables", ":resolve", "agents.callables:", "agents.callables:a-b"):
        with pytest.raises(ManifestInvalid, match="form module:function"):
            resolve(name)

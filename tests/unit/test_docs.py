"""What is written must be true: links, commands, codes and names in the pages are those of the code.

Rules about the code itself that no linter counts are held here too: no module is longer than 400 lines, everything
public says what it is, and nobody else's host is named.
"""

import ast
import importlib
import os
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import typer

from podium.cli import build
from podium.errors import catalogue
from podium.v1 import event_pb2

ROOT = Path(__file__).parents[2]
PACKAGES = ("agents", "cloud", "conductor", "edge", "federation", "podium", "tools")
SOURCES = tuple(ROOT / ("protos/podium" if name == "podium" else name) for name in (*PACKAGES, "bench"))
LONGEST_MODULE = 400
_MAY_BE_LONGER = {
    "tests/integration/test_hostile_devices.py": "one hostile message after the other",
    "tests/invoices_dev/wording.py": "a table of words",
    "tests/unit/agents/invoice_extraction/real_life.py": "a table of documents",
    "tests/unit/tools/sql/test_guard.py": "a table of hostile statements",
}
"""Why; the list only shrinks."""
_UNTRACKED = {"var", "dist", "build", "__pycache__", "node_modules"}
_OTHERS_HOSTS = tuple(
    "".join(pieces)
    for pieces in (
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("hugging", "face.co"),
        ("hf", ".co/"),
        ("model", "scope.c"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("proxy.go", "lang.org"),
        ("crates", ".io"),
        ("docker", ".io"),
        ("ghcr", ".io"),
        ("quay", ".io"),
        ("ana", "conda.org"),
        ("tf", "hub.dev"),
        ("kag", "gle.com"),
        ("github", "usercontent.com"),
    )
)
"""In pieces, so that this file names none either."""


@cache
def _files() -> tuple[Path, ...]:
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name not in _UNTRACKED and not name.endswith(".egg-info") and (name[0] != "." or name == ".ci")
        ]
        found += [Path(folder) / name for name in names]
    return tuple(sorted(found))


def _pages() -> tuple[Path, ...]:
    return tuple(path for path in _files() if path.suffix == ".md")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", _pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        assert "://" not in target, f"{target}: pages stand by themselves"
        file, _, anchor = target.partition("#")
        goal = (page.parent / file) if file else page
        assert goal.exists(), target
        if anchor:
            assert anchor in _anchors(goal), target


@pytest.mark.parametrize("page", _pages(), ids=_name)
def test_files_named_in_code_style_exist(page: Path) -> None:
    named = re.findall(r"`((?:\w[\w.-]*/)+[\w.-]+\.(?:py|toml|proto|sh|yaml|csv|binpb))`", page.read_text("utf-8"))
    places = [page.parent, ROOT, ROOT / "protos", ROOT / "agents"]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert not missing


@cache
def _commands() -> frozenset[str]:
    def leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                yield from leaves(child, (*words, name))
        else:
            yield " ".join(words)

    return frozenset(leaves(typer.main.get_command(build()), ()))


def test_every_command_has_its_section_and_no_other_has() -> None:
    described = re.findall(r"^### `podium ([a-z0-9 -]+)`$", _text("docs/commands.md"), re.MULTILINE)
    assert sorted(described) == sorted(_commands())


@pytest.mark.parametrize("page", _pages(), ids=_name)
def test_commands_shown_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"(?:`|^    (?:\.venv/bin/)?)podium ([a-z-]+)((?: [a-z][a-z0-9-]*)?)", text, re.MULTILINE)
    first = {command.split()[0] for command in _commands()}
    for top, rest in shown:
        assert top in first, f"podium {top}"
        below = {command.split()[1] for command in _commands() if command.startswith(f"{top} ")}
        assert not below or not rest.strip() or rest.strip() in below, f"podium {top}{rest}"


def test_every_error_code_is_listed_with_its_status() -> None:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("_pb2_grpc"):
                importlib.import_module(found.name)
    ours = {
        (code, kind.status.name, "yes" if kind.retryable else "no")
        for code, kind in catalogue().items()
        if kind.__module__.split(".")[0] in PACKAGES
    }
    listed = re.findall(r"^\| `([A-Z_]+)` \| ([A-Z_]+) \| (yes|no) \|", _text("docs/errors.md"), re.MULTILINE)
    assert sorted(listed) == sorted(ours)


def test_the_map_shows_every_folder() -> None:
    page = _text("docs/architecture.md")
    folders = {_name(path).split("/")[0] for path in _files() if path.parent != ROOT} - {".ci"}
    assert not {folder for folder in folders if f"`{folder}/`" not in page}


def test_the_architecture_names_every_event_and_every_reason_to_refuse_a_plan() -> None:
    page = _text("docs/architecture.md")
    kinds = {field.name for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"].fields}
    reasons = {
        code
        for name in ("conductor/verify.py", "conductor/edges.py")
        for code in re.findall(r'PlanProblem\(\s*code="([A-Z_]+)"', _text(name))
    }
    assert kinds
    assert reasons
    assert not {name for name in kinds | reasons if f"`{name}`" not in page}


def test_every_dependency_and_model_is_accounted_for() -> None:
    page = _text("docs/dependencies.md")
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    wanted += [line for line in _text("models.txt").splitlines() if line and not line.startswith("#")]
    names = {re.split(r"[<>=!~;\[ ]", item)[0] for item in wanted} - {"podium"}
    names |= set(tomllib.loads(_text("tools/models/pinned.toml"))["models"])
    assert not {name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)}


def test_every_decision_is_in_the_list() -> None:
    pages = {path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}
    assert pages
    assert set(re.findall(r"\(([0-9]{4}-[\w-]+\.md)\)", _text("docs/adr/README.md"))) == pages


def test_every_finding_of_the_invoice_pack_is_listed() -> None:
    page = _text("agents/packs/invoice/README.md")
    sources = [*(ROOT / "agents/packs/invoice/checks").glob("*.py"), *(ROOT / "tools/document").glob("*.py")]
    codes = {
        code
        for path in sources
        for code in re.findall(r'(?:code=|return )"([a-z]+_[a-z_]+)"[,)]', path.read_text(encoding="utf-8"))
    } - {"page_rotated"}  # told to the cloud, and no fault
    assert len(codes) > 15
    assert not {code for code in codes if f"`{code}`" not in page}


def _modules(*folders: Path) -> list[Path]:
    generated = re.compile(r"_pb2(_grpc)?\.py$")
    return [
        path
        for path in _files()
        if path.suffix == ".py"
        and not generated.search(path.name)
        and any(path.is_relative_to(item) for item in folders)
    ]


def test_no_module_is_too_long() -> None:
    lengths = {
        _name(path): len(path.read_text("utf-8").splitlines()) for path in _modules(*SOURCES, ROOT / "tests")
    }
    assert len(lengths) > 200
    long = {name: length for name, length in lengths.items() if length > LONGEST_MODULE}
    assert not {name: length for name, length in long.items() if name not in _MAY_BE_LONGER}


def _without_docstring(tree: ast.AST, place: str) -> Iterator[str]:
    if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(tree) is None:
            yield place
        if isinstance(tree, ast.Module | ast.ClassDef):
            for child in tree.body:
                if (
                    isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                    and child.name[0] != "_"
                ):
                    yield from _without_docstring(child, f"{place}:{child.name}")


def test_everything_public_says_what_it_is() -> None:
    silent: list[str] = []
    for path in _modules(*SOURCES):
        silent += _without_docstring(ast.parse(path.read_text(encoding="utf-8")), _name(path))
    assert not silent


def test_no_registry_and_no_model_hub_is_named() -> None:
    named = [
        f"{_name(path)}: {host}"
        for path in _files()
        for host in _OTHERS_HOSTS
        if host.encode() in path.read_bytes().lower()
    ]
    assert not named

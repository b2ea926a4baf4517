"""docs/agents.md as a new user would follow it: its commands run in order, its snippets stand in the examples."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes.examples import CODE, EXAMPLES, ROOT, Examples, wait_until_up

PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WITHIN_S = 60.0


@dataclass(kw_only=True)
class NewUser:
    """A checkout of one's own, with a shell in it."""

    folder: Path
    examples: Examples
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def types(self, script: str) -> tuple[int, str]:
        """Run a block of commands; its exit status and what it printed. What it leaves running runs on."""
        out = self.folder / f"out{len(self.started)}"
        with out.open("wb") as file:
            process = self._start(self.examples.here(script), stdout=file)
            status = process.wait(WITHIN_S)
        for name, port in self.examples.ports.items():
            if f"{name}.py" in script and script.rstrip().endswith("&"):
                wait_until_up(port)
        return status, out.read_text("utf-8")

    def serves(self, script: str) -> None:
        """Run the server's block in a terminal of its own; return when it serves."""
        served = self.folder / "served"
        with served.open("wb") as file:
            process = self._start(f"{script.rstrip()} --listen 127.0.0.1:0 2> server.log", stdout=file)
        ends_s = time.monotonic() + WITHIN_S
        while "listening on" not in served.read_text("utf-8"):
            assert process.poll() is None, (self.folder / "server.log").read_text("utf-8")
            assert time.monotonic() < ends_s
            threading.Event().wait(0.02)

    def leaves(self) -> None:
        """End everything that was started."""
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.started:
            process.wait(WITHIN_S)

    def _start(self, script: str, *, stdout: object) -> "subprocess.Popen[bytes]":
        chosen = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
        chosen["PATH"] = f"{Path(sys.executable).parent}:{chosen['PATH']}"
        process = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=self.folder,
            env=chosen | {"COLUMNS": "80", "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
            stdout=stdout,  # type: ignore[call-overload]  # a file
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.started.append(process)
        return process


@pytest.fixture
def new_user() -> Iterator[NewUser]:
    with tempfile.TemporaryDirectory(prefix="podium-page-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # what an isolated agent may read, it reaches as another user
        examples = Examples(folder / "docs" / "examples", Path(CODE))
        (folder / ".venv").symlink_to(ROOT / ".venv")
        user = NewUser(folder=folder, examples=examples)
        try:
            examples.start("blurb")  # the page expects a model to be served
            yield user
        finally:
            examples.close()
            user.leaves()


@pytest.mark.slow
def test_every_command_of_the_page_does_what_the_page_says(new_user: NewUser) -> None:
    printed = ""
    ran = 0
    for language, told, content in BLOCKS:
        if language == "sh" and content.startswith("podium serve"):
            new_user.serves(content)
        elif language == "sh":
            status, printed = new_user.types(content)
            assert status == int(told.removeprefix("exit=") or 0), f"{content}\n{printed}"
            ran += 1
        elif language == "text":
            for line in content.splitlines():
                assert new_user.examples.here(line) in printed, f"{line!r} is not in\n{printed}"
    assert ran > 10


@pytest.mark.parametrize("block", [block for block in BLOCKS if block[0] in ("python", "yaml")], ids=str)
def test_every_snippet_stands_in_an_example(block: tuple[str, str, str]) -> None:
    suffix = {"python": ".py", "yaml": ".yaml"}[block[0]]
    texts = [path.read_text("utf-8") for path in EXAMPLES.rglob(f"*{suffix}")]
    assert any(block[2] in text for text in texts), block[2]


def test_the_page_has_no_other_kind_of_block() -> None:
    assert {language for language, _, _ in BLOCKS} == {"sh", "text", "python", "yaml"}
    assert PAGE.count("```") == 2 * len(BLOCKS)

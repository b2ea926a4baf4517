"""Text of strangers on an operator's terminal: it is shown, and commands nothing."""

import io
import json
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from podium import cli
from podium.errors import AgentCrashed
from podium.terminal import Console, escaped, plain

ROOT = Path(__file__).parents[3]
EVIL = "good\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\rbad\u202etxt"


@pytest.mark.parametrize(
    "shown", [EVIL, Text(EVIL), Text.assemble((EVIL, "bold red"))], ids=["text", "rich", "styled"]
)
def test_nothing_in_a_text_reaches_the_terminal_as_a_command(shown: object) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=200, color_system="truecolor")
    console.print(shown, markup=False)
    table = Table(EVIL)
    table.add_row(EVIL)
    console.print(table)
    written = file.getvalue()
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\x7f", "\r", "\u202e"):
        assert sequence not in written
    assert "good" in written
    assert "bad" in written


def test_colours_of_our_own_stay() -> None:
    file = io.StringIO()
    Console(file=file, force_terminal=True, color_system="standard").print(Text("red", "bold red"))
    assert "\x1b[1;31m" in file.getvalue()


def test_json_means_the_same_and_commands_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cli.emit({"said": EVIL})
    out = capsys.readouterr().out
    assert json.loads(out) == {"said": EVIL}
    assert plain(out) == out
    assert escaped("华东 é") == "华东 é"


def test_an_error_is_shown_without_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.fail(AgentCrashed(EVIL, evidence=[EVIL], next_step=EVIL), as_json=False)
    err = capsys.readouterr().err
    assert "good" in err
    assert plain(err) == err


def test_every_command_shows_things_on_this_console() -> None:
    files = [path for top in ("protos/podium", "cloud", "edge", "agents") for path in (ROOT / top).rglob("*.py")]
    others = [str(path) for path in files if "from rich.console import" in path.read_text()]
    assert others == []

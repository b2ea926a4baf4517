"""The command line loads what is called and nothing else; other packages under our names are noticed."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import pytest
import typer

from podium import cli
from podium.errors import InvalidRequest
from podium.import_names import ImportNamesTaken, check_import_names


def test_every_entry_point_is_named_after_a_command_of_its_group():
    for entry in entry_points(group=cli.GROUP):
        # As a call finds it: only the group of that entry point is loaded.
        assert entry.name in typer.main.get_command(cli.build(entry.name)).commands, entry.name


def test_a_device_does_not_load_the_cloud():
    code = "import sys; from podium import cli; cli.build('edge'); print([m for m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(eval(done.stdout))
    assert "edge.commands" in loaded
    heavy = {"pydantic", "duckdb", "cryptography", "jsonschema_rs", "cel", "cloud", "conductor", "agents"}
    assert not heavy & loaded


def test_a_group_whose_library_is_missing_is_left_out_and_named(monkeypatch):
    def missing(self):
        raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

    entry = EntryPoint(name="serve", value="cloud.commands.serve:app", group=cli.GROUP)
    monkeypatch.setattr(cli, "entry_points", lambda group: [entry])
    monkeypatch.setattr(EntryPoint, "load", missing)
    app = cli.build()
    assert app.info.epilog == "Not installed here: serve (needs duckdb)"


def test_a_missing_module_of_our_own_is_a_defect_and_raised(monkeypatch):
    entry = EntryPoint(name="serve", value="cloud.nowhere:app", group=cli.GROUP)
    monkeypatch.setattr(cli, "entry_points", lambda group: [entry])
    with pytest.raises(ModuleNotFoundError):
        cli.build()


def test_an_entry_point_that_is_not_a_command_group_is_refused(monkeypatch):
    entry = EntryPoint(name="serve", value="json:dumps", group=cli.GROUP)
    monkeypatch.setattr(cli, "entry_points", lambda group: [entry])
    with pytest.raises(TypeError, match=r"typer\.Typer"):
        cli.build()
    assert isinstance(typer.Typer(), typer.Typer)


def test_an_error_is_one_json_object_and_exit_status_1(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.fail(InvalidRequest("[bold]no[/bold]", next_step="change it", evidence=["a"]), as_json=True)
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "error": {
            "code": "INVALID_REQUEST",
            "message": "[bold]no[/bold]",
            "next_step": "change it",
            "evidence": ["a"],
        }
    }
    assert "[bold]no[/bold]" in printed.err
    assert "What to do: change it" in printed.err


def test_names_taken_by_others_are_noticed():
    check_import_names({"agents": ["podium"], "conductor": ["podium"], "numpy": ["numpy"]})
    with pytest.raises(ImportNamesTaken) as caught:
        check_import_names({"agents": ["openai-agents", "podium"], "conductor": ["conductor-python"]})
    assert caught.value.evidence == (
        "agents is installed by openai-agents",
        "conductor is installed by conductor-python",
    )
    check_import_names()

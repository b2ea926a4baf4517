"""The `podium` command: finds its groups by the entry points `podium.commands`, named after their commands.

A group is a `typer.Typer` called `app`. One without a name of its own adds its commands at the top level
(`podium serve`); one with a name becomes a sub-command (`podium task ...`). Only the group that is called is
imported: a device does not load the cloud. A group whose libraries are not installed is left out, and
`podium --help` says so.
"""

import json
import sys
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, NoReturn

import click
import typer
from rich.text import Text

from podium.errors import InvalidRequest, PodiumError
from podium.terminal import Console, escaped

GROUP = "podium.commands"
_OUR_TOP_LEVELS = ("agents", "cloud", "conductor", "edge", "federation", "podium", "tools")


def main() -> None:
    """Run the command line; exit status 0 only on success, 2 when it was called wrongly."""
    app = build(sys.argv[1] if len(sys.argv) > 1 else "")
    as_json = "--json" in sys.argv
    try:
        # Typer tells a person what is wrong with the arguments; a program gets it as an object like any error.
        status = app(prog_name="podium", standalone_mode=not as_json)
    except PodiumError as error:
        fail(error, as_json=as_json)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "podium"
        wrong = InvalidRequest(error.format_message(), next_step=f"`{where} --help` shows how it is called.")
        fail(wrong, as_json=True, exit_status=error.exit_code)
    raise SystemExit(status if isinstance(status, int) else 0)


def build(command: str = "") -> typer.Typer:
    """The command line with the group of one top-level command, or with every group that can be loaded here."""
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    wanted = [entries[command]] if command in entries else [entries[name] for name in sorted(entries)]
    groups: dict[str, typer.Typer] = {}
    left_out: list[str] = []
    for entry in wanted:
        if entry.value in groups:
            continue
        try:
            groups[entry.value] = _load(entry)
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.split(".")[0] in _OUR_TOP_LEVELS:
                raise
            left_out.append(f"{entry.name} (needs {error.name})")
    app = typer.Typer(
        name="podium",
        help="Podium: light agents at the edge, a planning conductor in the cloud, answers with their sources.",
        epilog="Not installed here: " + ", ".join(left_out) if left_out else None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def keep_commands_named() -> None:
        """With one command alone typer would drop its name."""

    for group in groups.values():
        app.add_typer(group)
    return app


def require(*libraries: str) -> None:
    """For a group whose commands import their libraries when they run: say now which one is not installed.

    Raises:
        ModuleNotFoundError: the first that is missing, as an import of it would.
    """
    for library in libraries:
        if find_spec(library) is None:
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)


def fail(error: PodiumError, *, as_json: bool, exit_status: int = 1) -> NoReturn:
    """Print an error with what to do next and exit; with `as_json`, as an object on stdout too."""
    if as_json:
        emit(
            {
                "error": {
                    "code": error.code,
                    "message": error.message,
                    "next_step": error.next_step,
                    "evidence": list(error.evidence),
                }
            }
        )
    console = Console(stderr=True, highlight=False)
    console.print(Text.assemble((error.code, "bold red"), f" {error.message}"))
    for item in error.evidence:
        console.print(f"  - {item}", markup=False)
    console.print(f"What to do: {error.next_step}", markup=False)
    raise SystemExit(exit_status)


def emit(value: Any) -> None:
    """Print one JSON object on stdout; everything else a command says goes to stderr."""
    # JSON escapes some of the characters that a terminal obeys; the other ones become escapes here.
    text = escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _load(entry: EntryPoint) -> typer.Typer:
    group = entry.load()
    if not isinstance(group, typer.Typer):
        raise TypeError(f"entry point {entry.name} of {GROUP} is {type(group).__name__}, not typer.Typer")
    return group


if __name__ == "__main__":
    main()

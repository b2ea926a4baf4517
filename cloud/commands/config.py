"""`podium config`: the server's settings and where each comes from."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from podium.cli import emit
from podium.terminal import Console

app = typer.Typer(name="config", help="The server's settings.", no_args_is_help=True)


@app.callback()
def config_group() -> None:
    """The server's settings."""


@app.command()
def show(
    data: Annotated[Path | None, typer.Option(help="Data directory. Default: var.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, TOML. Default: podium.toml in --data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show every setting with its value and its source: default, file, environment or flag."""
    from cloud.settings import load_settings

    loaded = load_settings(flags={"data": data}, environment=os.environ, config=config)
    if as_json:
        emit({"settings": loaded.to_json()})
        return
    table = Table("Setting", "Value", "Source", "Meaning", box=None)
    for name, entry in loaded.to_json().items():
        value = "-" if entry["value"] is None else str(entry["value"])
        table.add_row(name, value, entry["source"], entry["meaning"])
    Console(highlight=False).print(table)

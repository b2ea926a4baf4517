"""`podium blobs ...`: what is stored, by whom, and what may go."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cloud.blobs.listing import list_blobs, usage
from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
)
from podium.cli import emit
from podium.terminal import Console

app = typer.Typer(
    name="blobs", help="Stored files: who has what, how much, and what may go.", no_args_is_help=True
)

_Directory = Annotated[Path, typer.Option("--data", envvar="PODIUM_DATA", help="Data directory of the server.")]


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would be removed.")] = False,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Remove blobs that no task refers to and that nobody used within blob_grace_hours.

    A running server does so by itself every blob_collect_minutes.
    """
    with connected(server, ca, data, token_file) as client:
        done = client.collect_garbage(dry_run=dry_run)
    if as_json:
        emit(
            {
                "dry_run": dry_run,
                "removed": {"count": done.removed_count, "bytes": done.removed_bytes},
                "kept": {"count": done.kept_count, "bytes": done.kept_bytes},
            }
        )
        return
    removed = "would be removed" if dry_run else "removed"
    Console(highlight=False).print(
        f"{done.removed_count} blobs with {done.removed_bytes} bytes {removed};"
        f" {done.kept_count} with {done.kept_bytes} bytes stay.",
        soft_wrap=True,
    )


@app.command("usage")
def usage_command(data: _Directory = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """Show how much is stored and which callers store most; works while a server runs."""
    found = usage(data)
    if as_json:
        emit(asdict(found))
        return
    console = Console(highlight=False)
    console.print(
        f"{found.blobs} blobs, {found.total_bytes} bytes; tasks refer to {found.referenced_blobs},"
        f" {found.referenced_bytes} bytes; {found.unfinished_uploads} unfinished uploads,"
        f" {found.unfinished_bytes} bytes.",
        soft_wrap=True,
    )
    table = Table("caller", "blobs", "bytes", box=None)
    for one in found.callers:
        table.add_row(Text(one.caller), str(one.blobs), str(one.total_bytes))
    console.print(table)


@app.command("list")
def list_command(
    data: _Directory = DEFAULT_DATA,
    caller: Annotated[str, typer.Option(help="Only what this caller stored.")] = "",
    unreferenced: Annotated[bool, typer.Option(help="Only what no task refers to.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List blobs, the newest first; works while a server runs."""
    found = list_blobs(data, caller=caller, unreferenced=unreferenced, limit=limit)
    if as_json:
        blobs = [
            asdict(blob) | {"stored_at": blob.stored_at.isoformat(), "used_at": blob.used_at.isoformat()}
            for blob in found
        ]
        emit({"blobs": blobs})
        return
    console = Console(highlight=False)
    for blob in found:
        about = (
            f" {blob.size_bytes} bytes, stored {blob.stored_at:%Y-%m-%d %H:%M}, {blob.references} tasks,"
            f" by {', '.join(blob.owners) or 'nobody known'}"
        )
        console.print(Text.assemble((blob.sha256, "bold"), about), soft_wrap=True)
    console.print(f"{len(found)} shown.")

"""`podium ledger ...`: look into a ledger, prove that it is whole, take a body out of it."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cloud.audit import FOLDER as AUDIT_FOLDER
from cloud.commands.connection import DEFAULT_DATA, JsonOption
from podium.cli import emit
from podium.terminal import Console
from tools.ledger.errors import storage_error
from tools.ledger.ledger import Ledger
from tools.ledger.reading import entries, export, head_of, verify
from tools.ledger.record import Entry, Head

if TYPE_CHECKING:
    from tools.ledger.reading import Verification

app = typer.Typer(
    name="ledger", help="Ledgers: what was recorded, and whether it is still as it was.", no_args_is_help=True
)

_DataOption = Annotated[
    Path, typer.Option("--data", envvar="PODIUM_DATA", help="Data directory, for its audit ledger.")
]
_LedgerOption = Annotated[Path | None, typer.Option("--ledger", help="Folder of any ledger, instead of --data.")]


@app.command()
def show(
    data: _DataOption = DEFAULT_DATA,
    ledger: _LedgerOption = None,
    after: Annotated[int | None, typer.Option(min=0, help="Only entries after this number.")] = None,
    key: Annotated[str | None, typer.Option(help="Only the entry recorded under this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show the newest entries, or those after a number; works while a server writes."""
    folder = _folder(data, ledger)
    head = head_of(folder)
    found = list(islice(_chosen(folder, head, after=after, key=key, limit=limit), limit))
    if as_json:
        emit({"ledger": str(folder), "entries": [_entry_json(entry) for entry in found], "head": _head_json(head)})
        return
    console = Console(highlight=False)
    for entry in found:
        # Escaped, because what agents recorded must not move the cursor or turn the text around.
        about = f" {entry.time:%Y-%m-%d %H:%M:%S} {entry.kind} {json.dumps(entry.key)}"
        console.print(Text.assemble((str(entry.sequence), "bold"), about), soft_wrap=True)
        body = "redacted" if entry.body is None else json.dumps(entry.body, sort_keys=True)
        console.print(Text("    " + body), soft_wrap=True)
    console.print(f"{len(found)} shown; the ledger has {head.sequence}.")


def _chosen(folder: Path, head: Head, *, after: int | None, key: str | None, limit: int) -> Iterator[Entry]:
    if key is not None:
        return (entry for entry in entries(folder, after=after or 0) if entry.key == key)
    return entries(folder, after=max(0, head.sequence - limit) if after is None else after)


@app.command("verify")
def verify_command(
    data: _DataOption = DEFAULT_DATA,
    ledger: _LedgerOption = None,
    head: Annotated[
        str, typer.Option(help="SEQUENCE:HASH, as `head` printed it earlier: finds a cut-off end.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Check every byte of every entry; exit 1 at damage, and say where the first is.

    Whether the end was cut off, or all written anew, can only be told with --head. Works while a server writes.
    """
    folder = _folder(data, ledger)
    found = verify(folder, head=Head.parse(head) if head else None)
    if as_json:
        emit(_verification_json(folder, found))
    else:
        _show_verification(folder, found)
    if found.damage is not None:
        raise SystemExit(1)


@app.command("head")
def head_command(
    data: _DataOption = DEFAULT_DATA, ledger: _LedgerOption = None, as_json: JsonOption = False
) -> None:
    """Print the last entry's number and hash, to be kept elsewhere for `verify --head`."""
    folder = _folder(data, ledger)
    head = head_of(folder)
    if as_json:
        emit({"ledger": str(folder), "head": _head_json(head)})
    else:
        Console(highlight=False).print(str(head), soft_wrap=True)


@app.command("export")
def export_command(
    output: Annotated[Path, typer.Option(help="File to write; replaced if it is there.")],
    data: _DataOption = DEFAULT_DATA,
    ledger: _LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all entries as JSON Lines, checked on the way; nothing is written if the ledger is damaged.

    The lines are those of the ledger, with their hashes: whoever gets the file can verify it.
    """
    folder = _folder(data, ledger)
    temporary = output.with_name(output.name + ".new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                found = export(folder, file)
            temporary.replace(output)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, output) from error
    if as_json:
        emit(
            {
                "ledger": str(folder),
                "output": str(output),
                "entries": found.head.sequence,
                "redacted": found.redacted,
                "head": _head_json(found.head),
            }
        )
    else:
        Console(highlight=False).print(Text(f"{found.head.sequence} entries in {output}"), soft_wrap=True)


@app.command()
def redact(
    sequence: Annotated[int, typer.Option(min=1, help="Number of the entry.")],
    reason: Annotated[str, typer.Option(help="Why; stays in the ledger.")],
    by: Annotated[str, typer.Option(help="Who wants it; stays in the ledger.")],
    data: _DataOption = DEFAULT_DATA,
    ledger: _LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the body of an entry out for good; its number, time, key and hash stay, and the chain still verifies.

    No server may run on the ledger meanwhile. Backups and exports are not reached.
    """
    folder = _folder(data, ledger)
    head_of(folder)  # a ledger that is not there is not made
    with Ledger(folder, clock=lambda: datetime.now(UTC)) as opened:
        receipt = opened.redact(sequence, reason=reason, by=by)
        head = opened.head
    if as_json:
        emit(
            {
                "ledger": str(folder),
                "sequence": sequence,
                "recorded_as": receipt.sequence,
                "duplicate": receipt.duplicate,
                "head": _head_json(head),
            }
        )
    else:
        before = "was redacted before" if receipt.duplicate else "is redacted"
        Console(highlight=False).print(f"Entry {sequence} {before}; entry {receipt.sequence} says why.")


def _folder(data: Path, ledger: Path | None) -> Path:
    return data / AUDIT_FOLDER if ledger is None else ledger


def _show_verification(folder: Path, found: "Verification") -> None:
    console = Console(highlight=False)
    if found.damage is not None:
        damage = found.damage
        place = f"{folder / damage.segment if damage.segment else folder}, byte {damage.offset}"
        console.print(
            Text(f"DAMAGED at {place} ({damage.length} bytes), entry {damage.sequence}:"), soft_wrap=True
        )
        console.print(Text(f"    {damage.reason}"), soft_wrap=True)
        console.print(
            f"Entries 1 to {found.head.sequence} are sound." if found.head.sequence else "None is sound."
        )
        return
    console.print(f"{found.head.sequence} entries are as they were written, {found.redacted} of them redacted.")
    for sequence in found.unfinished:
        console.print(
            f"The redaction of entry {sequence} is recorded and not finished; the next start finishes it."
        )
    if found.torn is not None:
        console.print(f"{found.torn.length} bytes at the end are being written, or are cut off at the next start.")
    console.print(f"head {found.head}", soft_wrap=True)


def _verification_json(folder: Path, found: "Verification") -> dict[str, Any]:
    damage = found.damage
    return {
        "ledger": str(folder),
        "ok": damage is None,
        "head": _head_json(found.head),
        "redacted": found.redacted,
        "unfinished_redactions": list(found.unfinished),
        "torn_bytes": found.torn.length if found.torn else 0,
        "damage": None
        if damage is None
        else {
            "file": damage.segment,
            "offset": damage.offset,
            "length": damage.length,
            "sequence": damage.sequence,
            "reason": damage.reason,
        },
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "time": entry.time.isoformat(),
        "kind": entry.kind,
        "key": entry.key,
        "hash": entry.hash,
        "redacted": entry.body is None,
        "body": entry.body,
    }


def _head_json(head: Head) -> dict[str, Any]:
    return {"sequence": head.sequence, "hash": head.hash}

"""`podium artefacts sign|keygen|trust|distrust|keys`: who answers for artefacts, and whom this place believes."""

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cloud.commands.artefact_showing import cells, key_json
from cloud.commands.artefact_store import (
    DATA_HELP,
    ByOption,
    WhyOption,
    json_object,
    media_type_of,
    opened,
    read_private_key,
    signature_json,
    statement_of,
    who,
)
from cloud.commands.connection import DEFAULT_DATA, JsonOption
from podium.cli import emit
from podium.terminal import Console
from tools.artefacts.errors import ArtefactInvalid
from tools.artefacts.files import write_whole
from tools.artefacts.records import Description, Reference, canonical_json

commands = typer.Typer()

_DataOption = Annotated[Path, typer.Option("--data", envvar="PODIUM_DATA", help=DATA_HELP)]


@commands.command()
def keygen(
    file: Annotated[Path, typer.Argument(help="Where to put the private key; keep it off the server.")],
    as_json: JsonOption = False,
) -> None:
    """Make a key pair to sign with; prints the public key, which `trust` makes known elsewhere."""
    from tools.artefacts.signing import new_key

    key = new_key()
    try:
        # Never over another key: what it signed could not be signed again.
        file.touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise ArtefactInvalid(f"{file} cannot be made: {error.strerror}", field="file") from error
    write_whole(file, key.private_pem, mode=0o600)
    public = base64.b64encode(key.public_key).decode("ascii")
    if as_json:
        emit({"key_id": key.key_id, "public_key": public, "private_key_file": str(file)})
        return
    console = Console(highlight=False)
    console.print(f"key {key.key_id} is in {file}; public key:", markup=False, soft_wrap=True)
    console.print(public, markup=False, soft_wrap=True)


@commands.command()
def sign(
    reference: Annotated[str, typer.Argument(metavar="KIND/NAME@VERSION", help="What it will be added as.")],
    key: Annotated[Path, typer.Option("--key", help="Private key of `keygen`.")],
    file: Annotated[
        Path | None, typer.Argument(help="The file; without it the version in --data gets one more signature.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Where to put the signature of FILE; FILE.signature by default."),
    ] = None,
    media_type: Annotated[str, typer.Option(help="As for `add`.")] = "",
    parent: Annotated[list[str] | None, typer.Option("--parent", help="As for `add`.")] = None,
    metrics: Annotated[str, typer.Option(help="As for `add`.")] = "",
    trial: Annotated[str, typer.Option(help="As for `add`.")] = "",
    by: ByOption = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Sign a file, with everything that is said of it; needs no data directory and no server."""
    from tools.artefacts.signing import sign as sign_statement

    private = read_private_key(key)
    if file is None:
        with opened(data) as registry:
            signed = registry.get(Reference.parse(reference)).statement
            registry.sign(Reference.parse(reference), sign_statement(private, signed), who=who(by, ""))
        target = None
    else:
        description = Description(
            reference=Reference.parse(reference),
            media_type=media_type or media_type_of(file),
            parents=tuple(Reference.parse(item) for item in parent or ()),
            metrics=json_object(metrics, "metrics"),
            trial=json_object(trial, "trial"),
        )
        signed = statement_of(description, file)
        target = output or file.with_name(file.name + ".signature")
        content = signature_json(sign_statement(private, signed), signed)
        write_whole(target, canonical_json(content) + b"\n")
    if as_json:
        emit({"artefact": reference, "key_id": private.key_id, "signature_file": target and str(target)})
    else:
        place = f"in {target}" if target else f"in the registry of {data}"
        Console(highlight=False).print(f"{reference} is signed, {place}", markup=False, soft_wrap=True)


@commands.command()
def trust(
    public_key: Annotated[str, typer.Argument(help="Public key in base64, as `keygen` printed it.")],
    label: Annotated[str, typer.Option(help="Whose key it is.")],
    expires: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Day (UTC) from which its signatures count no more."),
    ] = None,
    why: WhyOption = "",
    by: ByOption = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Let what a key signs be added and loaded here."""
    from tools.artefacts.trust import public_key_from_text

    ends = None if expires is None else expires.replace(tzinfo=UTC)
    with opened(data, make=True) as registry:
        key = registry.keys.trust(public_key_from_text(public_key), label=label, who=who(by, why), expires_at=ends)
    if as_json:
        emit(key_json(key))
    else:
        Console(highlight=False).print(f"key {key.key_id} is trusted", markup=False, soft_wrap=True)


@commands.command()
def distrust(
    key_id: Annotated[str, typer.Argument(help="Id of the key; `artefacts keys` lists them.")],
    why: WhyOption = "",
    by: ByOption = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Load nothing any more that only this key signed; says which current versions that concerns."""
    with opened(data) as registry:
        key = registry.keys.distrust(key_id, who=who(by, why))
        concerned = []
        for name in registry.names():
            current = registry.current(name)
            if current is None:
                continue
            reference = Reference(name=name, version=current.version)
            artefact = registry.get(reference)
            if any(item.key_id == key_id for item in artefact.signatures) and not registry.is_trusted(artefact):
                concerned.append(str(reference))
    if as_json:
        emit(key_json(key) | {"current_not_loaded_any_more": concerned})
        return
    console = Console(highlight=False)
    console.print(f"key {key.key_id} is distrusted", markup=False, soft_wrap=True)
    for item in concerned:
        console.print(f"{item} is current and is not loaded any more: roll back", markup=False, soft_wrap=True)


@commands.command("keys")
def list_keys(data: _DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """List every key that is or was trusted here."""
    with opened(data) as registry:
        keys = registry.keys.all()
    if as_json:
        emit({"keys": [key_json(key) for key in keys]})
        return
    table = Table("Key", "Whose", "Standing", box=None)
    for key in keys:
        standing = "trusted" if key.distrusted_at is None else f"distrusted {key.distrusted_at:%Y-%m-%d}"
        until = f" until {key.expires_at:%Y-%m-%d}" if key.expires_at is not None else ""
        table.add_row(*cells(key.key_id, key.label, standing + until))
    Console(highlight=False).print(table)

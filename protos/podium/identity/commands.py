"""`podium enroll` and `podium identity ...`: give this machine a certificate, look at it, renew it."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli import emit
from podium.errors import InvalidRequest
from podium.identity.enrolling import KINDS, Enrolled, enroll, public_certificate, renew
from podium.identity.token import MAX_TOKEN_CHARACTERS
from podium.link import MachineIdentity
from podium.link.renewing import Validity

TOKEN_VARIABLE = "PODIUM_ENROLMENT_TOKEN"  # noqa: S105 - a variable's name
DEFAULT_FOLDER = Path("identity")

app = typer.Typer()
identity = typer.Typer(name="identity", help="This machine's certificate.", no_args_is_help=True)
app.add_typer(identity)

FolderOption = Annotated[
    Path, typer.Option("--dir", envvar="PODIUM_IDENTITY", help="Folder of the identity's files.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


@app.command("enroll")
def enroll_command(
    server: Annotated[
        str, typer.Option("--server", envvar="PODIUM_SERVER", help="The server's port for callers, HOST:PORT.")
    ],
    kind: Annotated[str, typer.Option(help=f"What this machine is: {', '.join(KINDS)}.")] = "device",
    name: Annotated[str, typer.Option(help="The machine's name; not needed when the token names one.")] = "",
    folder: FolderOption = DEFAULT_FOLDER,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; - reads it from stdin.")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", envvar="PODIUM_CA", help="The server's authority, when the token does not name it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give this machine a certificate in exchange for a one-time token from `podium machine invite`.

    The token comes from --token-file, from stdin (--token-file -) or from PODIUM_ENROLMENT_TOKEN, never from the
    command line, which every user of this machine can read. The key is made here and never leaves the machine.
    """
    text = _token(token_file)
    ca_pem = _authority(ca) if ca is not None else b""
    enrolled = enroll(server, text, folder, kind=kind, name=name, ca_pem=ca_pem, clock=_now)
    _show(enrolled, "enrolled", as_json=as_json)


@identity.command()
def show(folder: FolderOption = DEFAULT_FOLDER, as_json: JsonOption = False) -> None:
    """Show who this machine is, and until when; exit 0 only if the files belong together."""
    found = MachineIdentity.load(folder)
    validity = Validity.read(folder)
    left = validity.renewal_due_in(_now(), 0)
    entry: dict[str, Any] = {
        "kind": found.kind,
        "name": found.name,
        "server": found.server,
        **public_certificate(found),
        "expired": validity.expires <= _now(),
        "renewal_due": (_now() + left).isoformat(),
        "dir": str(folder),
    }
    if as_json:
        emit(entry)
        return
    for label in ("name", "kind", "server", "serial", "sha256", "not_after", "renewal_due"):
        sys.stdout.write(f"{label:<12} {entry[label]}\n")
    if entry["expired"]:
        sys.stdout.write("By this machine's clock it has expired; `podium identity renew` renews it.\n")


@identity.command("renew")
def renew_command(folder: FolderOption = DEFAULT_FOLDER, as_json: JsonOption = False) -> None:
    """Renew the certificate now, with a new key; running processes do so by themselves in time."""
    _show(renew(folder, clock=_now), "renewed", as_json=as_json)


def _show(enrolled: Enrolled, what: str, *, as_json: bool) -> None:
    if as_json:
        emit(enrolled.to_json())
        return
    sys.stdout.write(
        f"{what}: {enrolled.kind} {enrolled.name}, until {enrolled.expires:%Y-%m-%d %H:%M} UTC; "
        f"files in {enrolled.folder}\nIt shows them to {enrolled.server}.\n"
    )


def _token(path: Path | None) -> str:
    if path is not None and str(path) == "-":
        return sys.stdin.read(MAX_TOKEN_CHARACTERS + 1)
    if path is not None:
        try:
            with path.open(encoding="utf-8") as file:
                return file.read(MAX_TOKEN_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"the token file {path} cannot be read", field="token-file") from error
    if text := os.environ.get(TOKEN_VARIABLE, ""):
        return text
    raise InvalidRequest(
        "there is no enrolment token",
        next_step=f"Give it with --token-file FILE, on stdin with --token-file -, or in {TOKEN_VARIABLE}.",
        field="token-file",
    )


def _authority(path: Path) -> bytes:
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"the CA file {path} cannot be read: {error.strerror}", field="ca") from error
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise InvalidRequest(f"{path} holds no certificate in PEM form", field="ca")
    return pem


def _now() -> datetime:
    return datetime.now(UTC)

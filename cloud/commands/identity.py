"""`podium machine ...`: let machines in with one-time tokens, see who is there, take certificates back."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    say,
    serving_address,
)
from cloud.commands.moments import length_of_time
from cloud.commands.secret_output import put, require_new
from podium.cli import emit
from podium.client.machines import MachinesClient
from podium.errors import InvalidRequest
from podium.terminal import Console
from podium.v1 import identity_pb2

app = typer.Typer(name="machine", help="Give machines certificates and take them back.", no_args_is_help=True)

_KINDS = {
    name.removeprefix("IDENTITY_KIND_").lower(): number
    for name, number in identity_pb2.IdentityKind.items()
    if number != identity_pb2.IDENTITY_KIND_UNSPECIFIED
}
_NAMES = {number: name for name, number in _KINDS.items()}

KindOption = Annotated[str, typer.Option(help=f"What the machine is: {', '.join(_KINDS)}.")]


@app.command()
def invite(
    kind: KindOption = "device",
    name: Annotated[
        str,
        typer.Option(help="The only name it is for; who has it is replaced. Default: any new name."),
    ] = "",
    lifetime: Annotated[
        str, typer.Option(help="How long it is good: 7d, 12h or 90m. Default: the server's setting, a day.")
    ] = "",
    uses: Annotated[int, typer.Option(min=1, max=10_000, help="How many machines may be enrolled with it.")] = 1,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="For an agent host: a DNS name or address it is reached by; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="A new file for the token, readable by you alone.")
    ] = None,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make a one-time token for `podium enroll`. It is shown this once; it also says whom the machine may trust.

    A token for a name that is taken lets another machine take its place (re-enrolment): the certificates of the
    one before are taken back when it is used.
    """
    require_new(output)
    wanted: timedelta | None = length_of_time(lifetime, "lifetime") if lifetime else None
    with serving_address(server, ca, data, token_file) as address, MachinesClient(address) as client:
        made = client.invite(_kind(kind), name=name, lifetime=wanted, uses=uses, host_names=host or ())
    if output is not None:
        put(output, made.token)
    expires = made.expire_time.ToJsonString()
    if as_json:
        where = {"file": str(output)} if output is not None else {"token": made.token}
        emit({"kind": kind, "name": name, "uses": uses, "expires": expires} | where)
        return
    who = f"the {kind} {name}" if name else f"{uses} new {kind}{'s' if uses > 1 else ''}"
    say(f"a token for {who}, good until {expires}; on the machine: podium enroll --server HOST:PORT --kind {kind}")
    sys.stdout.write(f"{output if output is not None else made.token}\n")


@app.command("list")
def list_machines(
    kind: Annotated[str, typer.Option(help=f"Only of this kind: {', '.join(_KINDS)}.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List the machines that were enrolled: until when, last seen, revoked, two holders noticed."""
    wanted = _kind(kind) if kind else identity_pb2.IDENTITY_KIND_UNSPECIFIED
    with serving_address(server, ca, data, token_file) as address, MachinesClient(address) as client:
        found = client.machines(wanted)
    if as_json:
        emit({"machines": [_as_json(machine) for machine in found]})
        return
    console = Console(highlight=False)
    if not found:
        console.print("No machine was enrolled. `podium machine invite` makes a token for one.")
    for machine in found:
        console.print(_line(machine), markup=False, soft_wrap=True)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The machine's name.")],
    kind: KindOption = "device",
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Take a machine's certificates back. What it has open ends at once, and only a new token lets it in again."""
    with serving_address(server, ca, data, token_file) as address, MachinesClient(address) as client:
        revoked = client.revoke(_kind(kind), name, reason=reason)
    if as_json:
        emit(_as_json(revoked.identity) | {"ended_calls": revoked.ended_calls})
        return
    console = Console(highlight=False)
    console.print(f"{kind} {name} is revoked; calls ended: {revoked.ended_calls}", markup=False, soft_wrap=True)


def _kind(name: str) -> "identity_pb2.IdentityKind.ValueType":
    if name not in _KINDS:
        raise InvalidRequest(f"{name!r} is not a kind of machine; there are {', '.join(_KINDS)}", field="kind")
    return identity_pb2.IdentityKind.Value(f"IDENTITY_KIND_{name.upper()}")


def _as_json(machine: identity_pb2.Identity) -> dict[str, Any]:
    return {
        "kind": _NAMES.get(machine.kind, ""),
        "name": machine.name,
        "serial": machine.serial,
        "enrolled": _moment(machine, "enrol_time"),
        "issued": _moment(machine, "issue_time"),
        "expires": _moment(machine, "expire_time"),
        "last_seen": _moment(machine, "last_seen_time"),
        "revoked": _moment(machine, "revoke_time"),
        "revoke_reason": machine.revoke_reason,
        "contested": _moment(machine, "contested_time"),
    }


def _moment(machine: identity_pb2.Identity, field: str) -> str | None:
    stamp: Timestamp = getattr(machine, field)
    return stamp.ToJsonString() if stamp.ByteSize() else None


def _line(machine: identity_pb2.Identity) -> str:
    seen = f"last seen {_short(machine.last_seen_time)}" if machine.HasField("last_seen_time") else "never seen"
    state = f"until {_short(machine.expire_time)}"
    if machine.HasField("revoke_time"):
        because = f" ({machine.revoke_reason})" if machine.revoke_reason else ""
        state = f"REVOKED {_short(machine.revoke_time)}{because}"
    line = f"{_NAMES.get(machine.kind, '?')} {machine.name}: {state}, {seen}"
    if machine.HasField("contested_time"):
        line += f"; TWO HOLDERS noticed {_short(machine.contested_time)}: revoke it and enrol the right one again"
    return line


def _short(stamp: Timestamp) -> str:
    moment: datetime = stamp.ToDatetime()
    return f"{moment:%Y-%m-%d %H:%M} UTC"

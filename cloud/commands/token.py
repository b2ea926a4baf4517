"""`podium token ...`: credentials of people and applications; machines are enrolled instead."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
    say,
)
from cloud.commands.moments import length_of_time
from cloud.commands.secret_output import put, require_new
from podium.cli import emit
from podium.terminal import Console

app = typer.Typer(name="token", help="Give callers tokens and take them back.", no_args_is_help=True)

SubjectOption = Annotated[str, typer.Option("--subject", help="The person or application, e.g. ann or erp.")]


@app.command()
def issue(
    subject: SubjectOption,
    role: Annotated[
        list[str], typer.Option("--role", help="viewer, caller, reviewer, operator, administrator; repeatable.")
    ],
    tenant: Annotated[
        str, typer.Option("--tenant", help="Whom they belong to; they themselves if not given.")
    ] = "",
    lifetime: Annotated[str, typer.Option(help="How long it is good: 30d, 12h, 90m or 45s.")] = "30d",
    output: Annotated[
        Path | None, typer.Option("--output", help="A new file for the token, readable by you alone.")
    ] = None,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make a token; it is shown this once and kept nowhere. Needs the role administrator."""
    require_new(output)
    with connected(server, ca, data, token_file) as client:
        issued = client.issue_token(subject, role, tenant=tenant, lifetime=length_of_time(lifetime, "lifetime"))
    if output is not None:
        put(output, issued.token)
    expires = issued.expire_time.ToJsonString()
    if as_json:
        where = {"file": str(output)} if output is not None else {"token": issued.token}
        emit(
            {"subject": subject, "roles": sorted(set(role)), "tenant": tenant or subject, "expires": expires}
            | where
        )
        return
    say(f"a token for {subject} ({', '.join(sorted(set(role)))}), good until {expires}")
    sys.stdout.write(f"{output if output is not None else issued.token}\n")


@app.command()
def revoke(
    subject: SubjectOption,
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Refuse every token that somebody was given up to now, and end what they have open. Needs administrator."""
    with connected(server, ca, data, token_file) as client:
        revoked = client.revoke_tokens(subject, reason=reason)
    since, ended = revoked.revoke_time.ToJsonString(), revoked.ended_calls
    if as_json:
        emit({"subject": subject, "revoked": since, "ended_calls": ended})
    else:
        line = f"tokens of {subject} issued up to {since} are refused; calls ended: {ended}"
        Console(highlight=False).print(line, markup=False, soft_wrap=True)

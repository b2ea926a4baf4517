"""`podium register`: look a manifest over, try the agent, and take it in."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cloud.commands.agents import agent_json
from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
    local_specialists,
    say,
)
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.terminal import Console
from podium.v1 import registry_pb2

if TYPE_CHECKING:
    from agents.manifest_text import Finding

app = typer.Typer()
_LONGEST_LINE = 160


@app.command()
def register(
    file: Annotated[Path, typer.Option("--file", help="The manifest, YAML.", show_default=False)],
    engine: Annotated[str, typer.Option(help="Takes the place of the manifest's engine.")] = "",
    model: Annotated[str, typer.Option(help="Takes the place of settings.model.")] = "",
    lint_only: Annotated[bool, typer.Option("--lint-only", help="Only look it over, without a server.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look it over and try it; keep nothing.")] = False,
    trial_count: Annotated[int, typer.Option(min=0, max=10_000, help="Inputs to try; the server's when 0.")] = 0,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Register an agent by its manifest; exit 0 only if it was taken in (or could be, with --dry-run).

    The manifest is looked over first: every weakness is shown with its line. The server then tries the agent on
    generated inputs and refuses one that breaks its own contract. An agent that writes is not tried.
    """
    text = _read(file)
    found = _looked_over(text, engine, model, data)
    fatal = any(finding.fatal for finding in found)
    if not as_json:
        _show_findings(Console(stderr=True, highlight=False), file, text, found)
    if fatal or lint_only:
        if as_json:
            emit(
                {"ok": not fatal, "kept": False, "agent": None, "findings": [_finding_json(one) for one in found]}
            )
        else:
            say("refused" if fatal else f"{file.name} has no fault that refuses it")
        raise SystemExit(1 if fatal else 0)
    with connected(server, ca, data, token_file) as client:
        response = client.register_agent(
            text, engine=engine, model=model, dry_run=dry_run, trial_count=trial_count
        )
    _show_response(response, found, kept=not dry_run, as_json=as_json)


def _read(file: Path) -> str:
    from agents.manifest_text import MAX_BYTES

    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InvalidRequest(f"{file} is larger than {MAX_BYTES} bytes", field="file")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file} cannot be read: {error}", field="file") from error


def _looked_over(text: str, engine: str, model: str, data: Path) -> "tuple[Finding, ...]":
    from agents.manifest_lint import lint

    # What the manifest may name of the server's machine, and which agents were registered there, only the server
    # can tell.
    known = [agent.spec for agent in local_specialists(data).registry.all_versions()]
    return lint(text, known=known, policy=None, engine=engine, model=model).findings


def _show_response(
    response: registry_pb2.RegisterAgentResponse, found: "Iterable[Finding]", *, kept: bool, as_json: bool
) -> None:
    told = {(finding.code, finding.line) for finding in found}
    further = [finding for finding in response.findings if (finding.code, finding.line) not in told]
    if as_json:
        findings = [*(_finding_json(one) for one in found), *(_finding_json(one) for one in further)]
        emit(
            {
                "ok": True,
                "kept": kept,
                "agent": agent_json(response.agent),
                "findings": findings,
                "answered": response.answered,
                "refused": response.refused,
            }
        )
        return
    console = Console(highlight=False)
    for finding in further:
        path = f" {finding.path}:" if finding.path else ""
        console.print(Text.assemble((finding.code, "yellow"), f"{path} {finding.message}"))
    agent = response.agent
    tried = f"answered {response.answered} trial inputs and refused {response.refused}"
    done = "registered" if kept else "could be registered"
    console.print(Text.assemble((agent.name, "bold"), f" {agent.version} {done}: it {tried}"))
    if kept and agent.weight == 0:
        console.print(
            f"It gets no calls yet: the weights of {agent.name} are set; see `podium agents weights`", markup=False
        )


def _show_findings(console: Console, file: Path, text: str, found: "Iterable[Finding]") -> None:
    lines = text.splitlines()
    for finding in found:
        style = "bold red" if finding.fatal else "yellow"
        where = f"{file.name}:{finding.line}: " if finding.line else f"{file.name}: "
        path = f" {finding.path}:" if finding.path else ""
        console.print(Text.assemble(where, (finding.code, style), f"{path} {finding.message}"), soft_wrap=True)
        if 0 < finding.line <= len(lines):
            shown = lines[finding.line - 1][:_LONGEST_LINE].replace("\t", " ")
            number = f"{finding.line:>6} | "
            console.print(f"{number}{shown}", markup=False, soft_wrap=True)
            column = min(max(finding.column, 1), _LONGEST_LINE)
            console.print(f"{' ' * (len(number) - 2)}| {' ' * (column - 1)}^", markup=False, soft_wrap=True)


def _finding_json(finding: "Finding | registry_pb2.ManifestFinding") -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": finding.path,
        "line": finding.line,
        "fatal": finding.fatal,
    }

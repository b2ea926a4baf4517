"""`podium agents list` and `podium validate`: which agents there are, and whether they keep their promises."""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    SettingsOption,
    TokenFileOption,
    connected,
    local_specialists,
    say,
)
from cloud.commands.showing import wrapped
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.v1 import agent_pb2

if TYPE_CHECKING:
    from agents.registry import RegisteredAgent
    from agents.validation import ValidationReport
    from cloud.specialists import Specialists

app = typer.Typer()
_BLOBS_BYTES = 2**20
_TOUCHES = {"none": "computes only", "read": "reads data", "write": "writes data", "unspecified": "unknown"}
agents = typer.Typer(name="agents", help="Which agents there are.", no_args_is_help=True)
app.add_typer(agents)


@agents.callback()
def _group() -> None:
    """Keep `list` a sub-command."""


@agents.command("list")
def list_agents(
    pack: Annotated[str, typer.Option(help="Only agents of this pack.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List the agents on duty: what each does, what it needs before it, what it may touch."""
    with connected(server, ca, data, token_file) as client:
        found = client.agents(pack)
    if as_json:
        emit({"agents": [_agent_json(agent) for agent in found]})
        return
    console = Console(highlight=False)
    for agent in found:
        pack = f"pack {agent.pack}, " if agent.pack else ""
        off = "" if agent.enabled else ", disabled"
        about = f" {agent.version} ({pack}{agent.engine}, {_TOUCHES[_touches(agent)]}{off})"
        console.print(Text.assemble((agent.name, "bold"), about), soft_wrap=True)
        for line in wrapped(agent.description, console.width, "    "):
            console.print(line, markup=False)


@app.command()
def validate(
    name: Annotated[str, typer.Argument(help="One agent; or use --all.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every agent.")] = False,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Inputs generated for each agent.")] = 25,
    seed: Annotated[int, typer.Option(help="The same seed generates the same inputs.")] = 0,
    data: SettingsOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Run agents on inputs generated from their schemas; exit 0 only if every one keeps its contract.

    An agent may refuse an input with a typed error. Crashing, running out of time or returning what its output
    schema does not allow is a broken promise. Agents that write are not run.
    """
    if bool(name) == everything:
        raise InvalidRequest("name one agent, or give --all", field="name")
    specialists = local_specialists(data)
    chosen = specialists.registry.serving() if everything else (specialists.registry.get(name),)
    reports = asyncio.run(_validate(specialists, chosen, count=count, seed=seed))
    passed = all(report.passed for report in reports)
    if as_json:
        emit({"ok": passed, "seed": seed, "agents": [_report_json(report) for report in reports]})
    else:
        _show(reports)
    if not passed:
        raise SystemExit(1)


async def _validate(
    specialists: "Specialists", chosen: "tuple[RegisteredAgent, ...]", *, count: int, seed: int
) -> "list[ValidationReport]":
    from agents.engines.python import PythonEngine
    from agents.invocation import AgentContext, Caller
    from agents.pack import build_resources
    from agents.specialists.logger import RESOURCE as AUDIT_LOG
    from agents.validation import validate_agent
    from cloud.app import BLOBS
    from cloud.audit import LedgerAuditLog
    from cloud.blobs import BlobLimits, BlobStore

    reports = []
    with tempfile.TemporaryDirectory(prefix="podium-validate-") as folder:
        audit_log = LedgerAuditLog(Path(folder) / "audit", clock=lambda: datetime.now(UTC))
        limits = BlobLimits(blob_bytes=_BLOBS_BYTES, all_bytes=_BLOBS_BYTES)
        blobs = BlobStore(Path(folder) / "blobs", limits, now=datetime.now(UTC))
        resources = build_resources(specialists.packs, Path(folder), {AUDIT_LOG: audit_log, BLOBS: blobs})
        engine = PythonEngine(resources, threads=2)
        context = AgentContext(
            task_id="validation",
            step=0,
            attempt=1,
            idempotency_key="validation/0",
            now=datetime.now(UTC),
            caller=Caller(name="validation"),
        )
        try:
            for agent in chosen:
                say(f"validating {agent.spec.name}")
                if agent.spec.engine != "python":
                    reports.append(_not_here(agent))
                    continue
                reports.append(await validate_agent(agent, engine, context, count=count, seed=seed))
        finally:
            engine.close()
            audit_log.close()
    return reports


def _not_here(agent: "RegisteredAgent") -> "ValidationReport":
    from agents.validation import ValidationReport

    return ValidationReport(
        agent=agent.spec.name,
        version=agent.spec.version,
        answered=0,
        refused={},
        violations=(),
        drift=(),
        skipped=f"it runs on a {agent.spec.engine}; its schemas were checked, it was not run",
    )


def _show(reports: "list[ValidationReport]") -> None:
    console = Console()
    table = Table("Agent", "Answered", "Refused", "Outcome", box=None)
    for report in reports:
        refused = ", ".join(f"{code} {times}" for code, times in report.refused.items())
        outcome = report.skipped or ("keeps its contract" if report.passed else "BREAKS its contract")
        table.add_row(report.agent, str(report.answered), refused, outcome)
    console.print(table)
    for report in reports:
        for line in (*report.violations, *report.drift):
            console.print(f"{report.agent}: {line}", markup=False)


def _report_json(report: "ValidationReport") -> dict[str, Any]:
    return {
        "agent": report.agent,
        "version": report.version,
        "passed": report.passed,
        "answered": report.answered,
        "refused": dict(report.refused),
        "violations": list(report.violations),
        "drift": list(report.drift),
        "skipped": report.skipped,
    }


def _touches(agent: agent_pb2.AgentDescription) -> str:
    return agent_pb2.SideEffects.Name(agent.side_effects).removeprefix("SIDE_EFFECTS_").lower()


def _agent_json(agent: agent_pb2.AgentDescription) -> dict[str, Any]:
    return {
        "name": agent.name,
        "version": agent.version,
        "pack": agent.pack,
        "description": agent.description,
        "engine": agent.engine,
        "enabled": agent.enabled,
        "side_effects": _touches(agent),
        "capability_tags": list(agent.capability_tags),
        "requires": list(agent.requires),
        "timeout_ms": agent.timeout.ToMilliseconds(),
    }

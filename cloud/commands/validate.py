"""`podium validate`: do agents keep their own contracts on inputs that are generated from their schemas?"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    JsonOption,
    ServerOption,
    SettingsOption,
    TokenFileOption,
    connected,
    say,
)
from podium.cli import emit
from podium.errors import AgentUnreachable, InvalidRequest, PodiumError
from podium.terminal import Console

if TYPE_CHECKING:
    from agents.invocation import Engine
    from agents.registry import RegisteredAgent
    from agents.validation import ValidationReport
    from cloud.settings import Settings
    from cloud.specialists import Specialists
    from podium.client import Client
    from podium.v1 import agent_pb2

app = typer.Typer()
_TELL_AFTER_S = 10.0
_LOCAL = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """How one agent did."""

    agent: str
    version: str
    passed: bool
    answered: int = 0
    refused: "dict[str, int]"
    violations: Sequence[str] = ()
    drift: Sequence[dict[str, Any]] = ()
    skipped: str = ""
    unreachable: str = ""
    seconds: float = 0.0


@app.command()
def validate(
    name: Annotated[str, typer.Argument(help="One agent; or use --all.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every agent.")] = False,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Inputs generated for each agent.")] = 25,
    seed: Annotated[int, typer.Option(help="The same seed generates the same inputs.")] = 0,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: SettingsOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Run agents on inputs generated from their schemas; exit 0 only if every one keeps its contract.

    An agent may refuse an input with a typed error. Crashing, running out of time or returning what its output
    schema does not allow is a broken promise; types that drift (a list as text with commas) are named. Agents that
    write are not run. Agents of the packs and those that were registered with the data directory run here, each by
    its own engine; with --server the agents that were registered there, and those that run elsewhere, are tried
    through it. One that cannot be reached is reported as that, and not as broken.
    """
    from cloud.settings import load_settings
    from cloud.specialists import load_specialists

    if bool(name) == everything:
        raise InvalidRequest("name one agent, or give --all", field="name")
    settings = load_settings(flags={"data": data}, environment=os.environ).settings
    specialists = load_specialists(settings.packs)
    if server is None:
        _registered_too(specialists, settings)
        chosen = specialists.registry.serving() if everything else (specialists.registry.get(name),)
        outcomes = asyncio.run(_validate_here(specialists, chosen, settings, count=count, seed=seed))
    else:
        with connected(server, ca, data, token_file) as client:
            outcomes = _validate_there(client, specialists, settings, name, count=count, seed=seed)
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        seconds = sum(outcome.seconds for outcome in outcomes)
        emit(
            {
                "ok": passed,
                "seed": seed,
                "count": count,
                "seconds": round(seconds, 1),
                "agents": [_outcome_json(outcome) for outcome in outcomes],
            }
        )
    else:
        _show(outcomes)
    if not passed:
        raise SystemExit(1)


async def _validate_here(
    specialists: "Specialists",
    chosen: "Sequence[RegisteredAgent]",
    settings: "Settings",
    *,
    count: int,
    seed: int,
) -> list[_Outcome]:
    from cloud.trying import engines_here

    outcomes = []
    with tempfile.TemporaryDirectory(prefix="podium-validate-") as folder:
        async with engines_here(specialists, settings, Path(folder)) as engines:
            for number, agent in enumerate(chosen):
                say(f"validating {agent.spec.name} ({number + 1} of {len(chosen)})")
                outcomes.append(await _tried_here(agent, engines, count=count, seed=seed))
    return outcomes


async def _tried_here(
    agent: "RegisteredAgent", engines: "Mapping[str, Engine]", *, count: int, seed: int
) -> _Outcome:
    from agents.invocation import AgentContext, Caller
    from agents.validation import validate_agent

    spec = agent.spec
    context = AgentContext(
        task_id="validation",
        step=0,
        attempt=1,
        idempotency_key="validation/0",
        now=datetime.now(UTC),
        caller=Caller(name="validation"),
    )
    began_s = time.perf_counter()
    if spec.engine not in engines:
        reason = f"it runs by engine {spec.engine}; its schemas were checked, it was not run"
        return _Outcome(agent=spec.name, version=spec.version, passed=True, refused={}, skipped=reason)
    try:
        report = await validate_agent(
            agent, engines[spec.engine], context, count=count, seed=seed, progress=_telling(spec.name, count)
        )
    except AgentUnreachable as error:
        return _unreachable(spec.name, spec.version, error, time.perf_counter() - began_s)
    return _outcome(report, time.perf_counter() - began_s)


def _registered_too(specialists: "Specialists", settings: "Settings") -> None:
    from cloud.trying import add_registered

    with tempfile.TemporaryDirectory(prefix="podium-validate-") as folder:
        for left_out in add_registered(specialists, settings, Path(folder)):
            say(left_out)


def _validate_there(
    client: "Client", specialists: "Specialists", settings: "Settings", name: str, *, count: int, seed: int
) -> list[_Outcome]:
    """The server's agents: those of the packs run here, the others through it."""
    there = [agent for agent in client.agents() if agent.enabled and name in ("", agent.name)]
    if name and not there:
        client.agent(name)  # says that there is none, or that it is out of service
        raise InvalidRequest(f"agent {name} is out of service", field="name")
    here = [
        agent
        for described in there
        if (agent := specialists.registry.exactly(described.name, described.version)) is not None
        and agent.manifest_sha256 == described.manifest_sha256
        and agent.spec.engine == _LOCAL
    ]
    names = {(agent.spec.name, agent.spec.version) for agent in here}
    outcomes = asyncio.run(_validate_here(specialists, here, settings, count=count, seed=seed))
    for described in there:
        if (described.name, described.version) not in names:
            say(f"trying {described.name} {described.version} on the server")
            outcomes.append(_tried_there(client, described, count))
    return sorted(outcomes, key=lambda outcome: (outcome.agent, outcome.version))


def _tried_there(client: "Client", described: "agent_pb2.AgentDescription", count: int) -> _Outcome:
    began_s = time.perf_counter()
    manifest = client.agent(described.name, described.version).manifest_json.decode("utf-8")
    try:
        response = client.register_agent(manifest, dry_run=True, trial_count=count)
    except AgentUnreachable as error:
        return _unreachable(described.name, described.version, error, time.perf_counter() - began_s)
    except PodiumError as error:
        return _Outcome(
            agent=described.name,
            version=described.version,
            passed=False,
            refused={},
            violations=[f"{error.code}: {error.message}", *error.evidence],
            seconds=time.perf_counter() - began_s,
        )
    reasons = {finding.code: finding.message for finding in response.findings}
    return _Outcome(
        agent=described.name,
        version=described.version,
        passed=True,
        answered=response.answered,
        refused={"any code": response.refused} if response.refused else {},
        skipped=reasons.get("TRIAL_SKIPPED", ""),
        drift=[
            {"kind": one.code, "place": one.path or "$", "message": one.message, "times": None}
            for one in response.findings
            if one.code == "TRIAL_CUT_SHORT" or one.path.startswith("$")
        ],
        seconds=time.perf_counter() - began_s,
    )


def _telling(name: str, count: int) -> Callable[[int], None]:
    """Says now and then how far a long run has come."""
    told_s = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told_s
        if time.monotonic() - told_s > _TELL_AFTER_S:
            told_s = time.monotonic()
            say(f"  {name}: {done} inputs done, of about {count}")

    return tell


def _unreachable(name: str, version: str, error: AgentUnreachable, seconds: float) -> _Outcome:
    """It may keep its contract or not: nobody knows."""
    return _Outcome(
        agent=name, version=version, passed=False, refused={}, unreachable=error.message, seconds=seconds
    )


def _outcome(report: "ValidationReport", seconds: float) -> _Outcome:
    return _Outcome(
        agent=report.agent,
        version=report.version,
        passed=report.passed,
        answered=report.answered,
        refused=dict(report.refused),
        violations=report.violations,
        drift=[
            {"kind": one.kind, "place": one.place, "message": one.message, "times": one.times}
            for one in report.drift
        ],
        skipped=report.skipped,
        seconds=seconds,
    )


def _show(outcomes: Sequence[_Outcome]) -> None:
    console = Console()
    table = Table("Agent", "Answered", "Refused", "Seconds", "Outcome", box=None)
    for outcome in outcomes:
        refused = ", ".join(f"{code} {times}" for code, times in outcome.refused.items())
        said = (
            outcome.skipped
            or ("cannot be reached" if outcome.unreachable else "")
            or ("keeps its contract" if outcome.passed else "BREAKS its contract")
        )
        table.add_row(outcome.agent, str(outcome.answered), refused, f"{outcome.seconds:.1f}", said)
    console.print(table)
    for outcome in outcomes:
        for one in outcome.drift:
            times = f" ({one['times']} times)" if one["times"] is not None else ""
            console.print(f"{outcome.agent}: {one['kind']} {one['place']}: {one['message']}{times}", markup=False)
        if outcome.unreachable:
            console.print(f"{outcome.agent}: {outcome.unreachable}", markup=False)
        for line in outcome.violations:
            console.print(f"{outcome.agent}: {line}", markup=False)
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    console.print(f"{len(outcomes)} agents in {minutes:.1f} minutes")


def _outcome_json(outcome: _Outcome) -> dict[str, Any]:
    return {
        "agent": outcome.agent,
        "version": outcome.version,
        "passed": outcome.passed,
        "answered": outcome.answered,
        "refused": outcome.refused,
        "violations": list(outcome.violations),
        "drift": list(outcome.drift),
        "skipped": outcome.skipped,
        "unreachable": outcome.unreachable,
        "seconds": round(outcome.seconds, 2),
    }

"""`podium plan`: what would be done, without doing it."""

import asyncio
import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cloud.commands.connection import DEFAULT_DATA, JsonOption, SettingsOption, say
from cloud.commands.moments import moment
from cloud.commands.progress import plan_line
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.terminal import Console

if TYPE_CHECKING:
    from cloud.settings import Settings
    from cloud.specialists import Specialists
    from conductor.plan import Plan
    from conductor.planner import Proposal
    from conductor.policy.model import PlannerModel
    from conductor.verify import VerifiedPlan

app = typer.Typer()


class PlannerName(StrEnum):
    """What makes the plan."""

    RULES = "rules"
    POLICY = "policy"
    HYBRID = "hybrid"


@app.command()
def plan(
    text: Annotated[str, typer.Argument(help="The request, in Chinese or English; none with --batch.")] = "",
    now: Annotated[str | None, typer.Option("--now", help="What 'last quarter' refers to, ISO.")] = None,
    planner: Annotated[
        PlannerName | None,
        typer.Option(
            "--planner",
            help="rules: of the packs; policy: trained; hybrid: both. Of --batch policy, else as the server.",
        ),
    ] = None,
    batch: Annotated[
        Path | None, typer.Option("--batch", help='Requests, one {"id", "request"[, "tools"]} a line.')
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the plans of --batch go.")] = None,
    decisions: Annotated[
        Path | None,
        typer.Option("--decisions", help="Where what the model chose goes, with log-probabilities; of --batch."),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option("--tools", help='{"tools"[, "links"]} for rows without tools; the packs\' agents without.'),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", min=0, max=64, help="Rows planned at once; 0: one a core.")
    ] = 0,
    data: SettingsOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Plan a request and verify the plan without running it; exit 0 only if the plan may run.

    Needs no server; knows the agents of the packs and those registered with the data directory. A request that is
    not understood is planned too: as a question to its caller. With hybrid, says who was asked for a plan; a plan
    that a person would be asked for first may not run.

    With --batch, plans every row of a file, over its own tools, those of --tools or the packs' agents, and writes
    one {"id", "steps", "confidence"} a line to --out. A row with any other key fails before anything is planned.
    --decisions gets the choices that made each plan, one request a line, for training by reinforcement.
    """
    if any(path is not None for path in (batch, out, decisions, tools)):
        if planner == PlannerName.HYBRID:
            raise InvalidRequest(
                "hybrid asks the rules of the packs first, and no rule speaks of tools that only a file describes",
                field="planner",
                next_step="With --batch use --planner policy, or rules for the packs' agents; "
                "hybrid plans one request: `podium plan TEXT --planner hybrid`.",
            )
        _plan_batch(
            text, now, planner or PlannerName.POLICY, batch, out, decisions, tools, threads, data, as_json=as_json
        )
        return
    if not text.strip():
        raise InvalidRequest("the text is empty", field="text")
    _plan_one(text, now, planner, data, as_json=as_json)


def _plan_one(text: str, now: str | None, planner: PlannerName | None, data: Path, *, as_json: bool) -> None:
    from agents.invocation import Caller
    from cloud.planners import command_planner
    from conductor.planner import Situation
    from conductor.request import build_request
    from conductor.state import TaskState
    from conductor.verify import verified

    specialists = specialists_of(data)
    caller = Caller(name="command line")
    request = build_request(
        TaskState(text=text, as_of=moment(now) or datetime.now(UTC)),
        specialists.normalise,
        caller=caller,
        agents=[agent.spec.name for agent in specialists.registry.serving()],
        device_online=False,
    ).value
    situation = Situation(request=request, registry=specialists.registry, caller=caller)
    settings = _settings(data, planner)
    proposal = asyncio.run(command_planner(settings, specialists).propose(situation))
    checked = verified(proposal.plan, specialists.registry, request, caller, answer=proposal.answer)
    if as_json:
        origin = {"planner": proposal.planner, "origin": proposal.origin, "warnings": list(checked.warnings)}
        others = [{"tools": list(item.tools), "confidence": item.confidence} for item in proposal.alternatives]
        route = {"route": [entry.to_json() for entry in proposal.route], "for_person": proposal.for_person}
        emit(checked.plan.to_json() | origin | route | ({"alternatives": others} if others else {}))
    else:
        _show_proposal(proposal, checked)
    if proposal.for_person:
        raise SystemExit(1)


def _show_proposal(proposal: "Proposal", checked: "VerifiedPlan") -> None:
    origin_word = "template" if proposal.planner == "rules" else "model"
    _show(checked.plan, f"the planner {proposal.planner}, {origin_word} {proposal.origin}")
    console = Console(highlight=False)
    for entry in proposal.route:
        console.print(f"Asked: {entry.words}{' (taken)' if entry.taken else ''}", markup=False, soft_wrap=True)
    if proposal.for_person:
        console.print("A person would be asked for this plan before it runs.", markup=False)
    for item in proposal.alternatives:
        words = ", ".join(item.tools) or "nobody here can serve it"
        console.print(f"Alternative ({item.confidence:.2f}): {words}", markup=False)
    for warning in checked.warnings:
        console.print(f"Warning: {warning}", markup=False)


def _plan_batch(
    text: str,
    now: str | None,
    planner: PlannerName,
    batch: Path | None,
    out: Path | None,
    decisions: Path | None,
    tools: Path | None,
    threads: int,
    data: Path,
    *,
    as_json: bool,
) -> None:
    from cloud.commands.plan_batch import plan_batch

    if text:
        raise InvalidRequest("a text and --batch are two things to plan", field="text")
    if batch is None or out is None:
        missing = "--batch" if batch is None else "--out"
        raise InvalidRequest(f"{missing} is missing: planning many needs --batch and --out", field=missing[2:])
    report = plan_batch(
        specialists_of(data),
        batch=batch,
        out=out,
        decisions=decisions,
        tools=tools,
        planner=planner.value,
        model=_model(data) if planner == PlannerName.POLICY else None,
        threads=threads or os.cpu_count() or 1,
        now=moment(now),
    )
    if as_json:
        emit(report)
        return
    words = f"{report['plans']} plans are in {out}, after {report['seconds']:g} s"
    Console(highlight=False).print(words, markup=False, soft_wrap=True)


def _model(data: Path) -> "PlannerModel":
    """The promoted planner of the data directory, or the one that ships."""
    from cloud.planning import command_model

    return command_model(data)


def _settings(data: Path, planner: PlannerName | None = None) -> "Settings":
    from cloud.settings import load_settings

    flags = {"data": data, "planner": planner.value if planner is not None else None}
    return load_settings(flags=flags, environment=os.environ).settings


def specialists_of(data: Path) -> "Specialists":
    """The packs and the agents registered with a data directory; what is left out is told on stderr."""
    from cloud.specialists import load_specialists
    from cloud.trying import add_registered

    settings = _settings(data)
    specialists = load_specialists(settings.packs)
    with tempfile.TemporaryDirectory(prefix="podium-plan-") as scratch:
        for left_out in add_registered(specialists, settings, Path(scratch)):
            say(left_out)
    return specialists


def _show(plan: "Plan", origin: str) -> None:
    console = Console(highlight=False)
    console.print(f"Plan by {origin}, confidence {plan.confidence:.2f}", markup=False)
    table = Table("Step", "Agent", "After", "Given", box=None)
    tools = [step.tool for step in plan.steps]
    for index, (step, written) in enumerate(zip(plan.steps, plan.to_json()["steps"], strict=True)):
        after = ", ".join(map(str, step.depends_on))
        table.add_row(str(index), step.tool, after, _given(written["arguments"], tools))
    console.print(table)
    console.print(f"Order: {plan_line(plan.to_proto())}", markup=False)


def _given(arguments: Mapping[str, Any], tools: list[str]) -> str:
    """A step's arguments by their origin: `dataset=sales; the request: language, text; coder: statements`."""
    origins: dict[str, list[str]] = defaultdict(list)
    for name, value in arguments.items():
        if isinstance(value, dict) and "request" in value:
            origins["the request"].append(name)
        elif isinstance(value, dict) and "step" in value:
            origins[tools[value["step"]]].append(name)
        else:
            origins[""].append(f"{name}={value}")
    return "; ".join(f"{origin + ': ' if origin else ''}{', '.join(names)}" for origin, names in origins.items())

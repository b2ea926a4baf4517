"""`podium plan`: what would be done, without doing it."""

import asyncio
import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
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
    from cloud.specialists import Specialists
    from conductor.plan import Plan

app = typer.Typer()


@app.command()
def plan(
    text: Annotated[str, typer.Argument(help="The request, in Chinese or English.")],
    now: Annotated[str | None, typer.Option("--now", help="What 'last quarter' refers to, ISO.")] = None,
    data: SettingsOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Plan a request and verify the plan without running it; exit 0 only if the plan may run.

    Needs no server; knows the agents of the packs and those registered with the data directory. A request that is
    not understood is planned too: as a question to its caller.
    """
    from agents.invocation import Caller
    from conductor.planner import Situation
    from conductor.request import build_request
    from conductor.state import TaskState
    from conductor.verify import verified

    if not text.strip():
        raise InvalidRequest("the text is empty", field="text")
    specialists = _specialists(data)
    caller = Caller(name="command line")
    request = build_request(
        TaskState(text=text, as_of=moment(now) or datetime.now(UTC)),
        specialists.normalise,
        caller=caller,
        agents=[agent.spec.name for agent in specialists.registry.serving()],
        device_online=False,
    ).value
    situation = Situation(request=request, registry=specialists.registry, caller=caller)
    proposal = asyncio.run(specialists.planner.propose(situation))
    checked = verified(proposal.plan, specialists.registry, request, caller, answer=proposal.answer)
    if as_json:
        origin = {"planner": proposal.planner, "origin": proposal.origin, "warnings": list(checked.warnings)}
        emit(checked.plan.to_json() | origin)
        return
    _show(checked.plan, f"the planner {proposal.planner}, template {proposal.origin}")
    for warning in checked.warnings:
        Console(highlight=False).print(f"Warning: {warning}", markup=False)


def _specialists(data: Path) -> "Specialists":
    from cloud.settings import load_settings
    from cloud.specialists import load_specialists
    from cloud.trying import add_registered

    settings = load_settings(flags={"data": data}, environment=os.environ).settings
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

"""`podium plan`: what would be done, without doing it."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agents.invocation import Caller
from cloud.commands.connection import JsonOption
from cloud.commands.moments import moment
from cloud.specialists import load_specialists
from conductor.plan import Plan
from conductor.planner import Situation
from conductor.request import build_request
from conductor.state import TaskState
from conductor.verify import verified
from podium.cli import emit

app = typer.Typer()


@app.command()
def plan(
    text: Annotated[str, typer.Argument(help="The request, in Chinese or English.")],
    now: Annotated[str | None, typer.Option("--now", help="What 'last quarter' refers to, ISO.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a request and verify the plan without running it; exit 0 only if the plan may run."""
    specialists = load_specialists()
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
    _show(checked.plan, f"{proposal.planner}/{proposal.origin}")


def _show(plan: Plan, origin: str) -> None:
    console = Console()
    console.print(f"Plan by {origin}, confidence {plan.confidence:.2f}", markup=False)
    table = Table("Step", "Agent", "After", "Arguments", box=None)
    for index, (step, written) in enumerate(zip(plan.steps, plan.to_json()["steps"], strict=True)):
        after = ", ".join(map(str, step.depends_on))
        arguments = ", ".join(f"{name}={value}" for name, value in written["arguments"].items())
        table.add_row(str(index), step.tool, after, arguments[:100])
    console.print(table)
    together = " then ".join("∥".join(map(str, group)) for group in plan.parallel_groups)
    console.print(f"Runs {together}", markup=False)

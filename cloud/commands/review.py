"""`podium review ...`: what waits for a person, and how a person settles it."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
    reach,
)
from cloud.commands.presenting import error_json, route_json, route_words
from cloud.commands.progress import plan_line
from cloud.commands.showing import wrapped
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.status import task_status_name
from podium.terminal import Console
from podium.v1 import review_pb2, status_pb2

app = typer.Typer(name="review", help="Settle what waits for a person.", no_args_is_help=True)


@app.command("list")
def list_reviews(
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List what waits for a person, oldest first, with why."""
    with connected(server, ca, data, token_file) as client:
        reviews = client.reviews()
    if as_json:
        items = [
            {
                "task_id": review.task_id,
                "request": review.text,
                "step": review.step if review.HasField("step") else None,
                "reason": error_json(review.reason),
                "since": review.since.ToJsonString(),
                "input": json.loads(review.input_json) if review.input_json else None,
                "output_schema": json.loads(review.output_schema_json) if review.output_schema_json else None,
                "proposed_plan": json.loads(review.proposed_plan_json) if review.proposed_plan_json else None,
                "normalised_request": json.loads(review.request_json) if review.request_json else None,
                "route": [route_json(entry) for entry in review.route],
            }
            for review in reviews
        ]
        emit({"reviews": items})
        return
    console = Console(highlight=False)
    if not reviews:
        console.print("Nothing waits for a person.")
    for review in reviews:
        step = f", step {review.step}" if review.HasField("step") else ""
        since = review.since.ToDatetime().strftime("%Y-%m-%d %H:%M:%S")
        console.print(f"{review.task_id}{step}, since {since} UTC", markup=False, soft_wrap=True)
        console.print(Text(f"    {' '.join(review.text.split())}", no_wrap=True, overflow="ellipsis"))
        for line in wrapped(f"{review.reason.code}: {review.reason.message}", console.width, "    "):
            console.print(line, markup=False)
        for line in _about_plan(review):
            console.print(f"    {line}", markup=False, soft_wrap=True)
    if reviews:
        resolve = f"podium review resolve ID{reach(server, ca, data, token_file)}"
        console.print("What each step was given and must return, and whole plans: --json. Settle one with:")
        steps = any(review.HasField("step") for review in reviews)
        plans = any(review.proposed_plan_json for review in reviews)
        ways = [*(["--output FILE"] if steps else []), *(["--accept", "--plan FILE"] if plans else []), "--reject"]
        console.print(f"  {resolve} {' | '.join(ways)}", markup=False, soft_wrap=True)


def _about_plan(review: review_pb2.Review) -> list[str]:
    """The plan that a case asks about, with who was asked for one."""
    if not review.proposed_plan_json:
        return []
    from conductor.plan import Plan

    plan = Plan.from_json(json.loads(review.proposed_plan_json))
    asked = (f"Asked: {words}" for words in route_words(review.route))
    return [f"Proposed: {plan_line(plan.to_proto())}", *asked]


@app.command("resolve")
def resolve(
    task_id: Annotated[str, typer.Argument(metavar="ID", help="The task's id.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="JSON file with the step's corrected output; the task goes on.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="JSON file with the plan to follow, - for stdin, where a plan is asked for."),
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Follow the proposed plan as it is.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="End the task as failed.")] = False,
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Settle one case: give the step's output or the plan, accept the proposed plan, or reject the task.

    A plan is verified like any other; one that must not run is refused with all reasons, and the case stays open.
    """
    if (output is not None) + (plan is not None) + accept + reject != 1:
        raise InvalidRequest(
            "give one of --output FILE, --plan FILE, --accept and --reject", field="plan" if plan else "output"
        )
    output_json = _json_of(output, "output") if output is not None else b""
    plan_json = _json_of(plan, "plan") if plan is not None else b""
    verdict = status_pb2.REVIEW_VERDICT_CORRECTED
    if reject:
        verdict = status_pb2.REVIEW_VERDICT_REJECTED
    elif accept:
        verdict = status_pb2.REVIEW_VERDICT_ACCEPTED
    with connected(server, ca, data, token_file) as client:
        status = task_status_name(
            client.resolve_review(task_id, verdict, output_json=output_json, plan_json=plan_json, note=note)
        )
    if as_json:
        emit({"task_id": task_id, "status": status})
    else:
        Console(highlight=False).print(f"task {task_id} is {status}", markup=False, soft_wrap=True)


def _json_of(file: Path, field: str) -> bytes:
    """The JSON of a file, or of stdin for `-`."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{file} is not a readable JSON file: {error}", field=field) from error

"""`podium review ...`: what waits for a person, and how a person settles it."""

import json
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
from cloud.commands.presenting import error_json
from cloud.commands.showing import wrapped
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.status import task_status_name
from podium.terminal import Console
from podium.v1 import status_pb2

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
    if reviews:
        resolve = f"podium review resolve ID{reach(server, ca, data, token_file)}"
        console.print("What each step was given and must return: --json. Settle one with:")
        console.print(f"  {resolve} --output FILE | --reject", markup=False, soft_wrap=True)


@app.command("resolve")
def resolve(
    task_id: Annotated[str, typer.Argument(metavar="ID", help="The task's id.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="JSON file with the step's corrected output; the task goes on.")
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="End the task as failed.")] = False,
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Settle one case: give the corrected output of the step, or reject the task."""
    if (output is None) == (not reject):
        raise InvalidRequest("give either --output FILE or --reject", field="output")
    content = b""
    if output is not None:
        try:
            content = json.dumps(json.loads(output.read_text(encoding="utf-8")), ensure_ascii=False).encode()
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{output} is not a readable JSON file: {error}", field="output") from error
    verdict = status_pb2.REVIEW_VERDICT_REJECTED if reject else status_pb2.REVIEW_VERDICT_CORRECTED
    with connected(server, ca, data, token_file) as client:
        status = task_status_name(client.resolve_review(task_id, verdict, output_json=content, note=note))
    if as_json:
        emit({"task_id": task_id, "status": status})
    else:
        Console(highlight=False).print(f"task {task_id} is {status}", markup=False, soft_wrap=True)

"""`podium submit` and `podium task ...`: hand in a task and follow it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
    local_specialists,
    reach,
    say,
)
from cloud.commands.moments import moment
from cloud.commands.presenting import diagnosis_json, route_words, span_json, summary_json, task_json
from cloud.commands.progress import Progress
from cloud.commands.showing import show_list, show_task, timeline_picture
from podium.cli import emit
from podium.client import Client
from podium.errors import Conflict, InvalidRequest
from podium.status import ENDED, WAITS_FOR_PERSON, TaskStatus, task_status_name, task_status_of
from podium.terminal import Console
from podium.v1 import event_pb2, status_pb2, task_pb2

if TYPE_CHECKING:
    from conductor.timeline import Span

app = typer.Typer()
tasks = typer.Typer(name="task", help="Read, follow, answer, cancel and diagnose tasks.", no_args_is_help=True)
app.add_typer(tasks)

TaskIdArgument = Annotated[str, typer.Argument(help="The task's id.", metavar="ID")]


@app.command()
def submit(
    text: Annotated[str, typer.Argument(help="The request, in Chinese or English.")],
    file: Annotated[Path | None, typer.Option("--file", help="A PNG, JPEG or PDF the request is about.")] = None,
    now: Annotated[str | None, typer.Option("--now", help="What 'last quarter' refers to, ISO.")] = None,
    request_id: Annotated[str, typer.Option(help="A UUID; the same one returns the first task.")] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the task until it ends or asks.")] = True,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Hand in a task and print its answer with the sources; exit 0 only if it succeeded.

    Without --server, the server that runs on the data directory is used, or one is started for this command.
    """
    with connected(server, ca, data, token_file) as client:
        attachments = [client.upload(file)] if file is not None else []
        task = client.submit(text, request_id=request_id, as_of=moment(now), attachments=attachments)
        say(f"task {task.task_id} accepted")
        if wait:
            task = _follow(client, task.task_id)
    _finish(
        task,
        reach(server, ca, data, token_file),
        as_json=as_json,
        good=task.status == status_pb2.TASK_STATUS_SUCCEEDED or not wait,
    )


@tasks.command()
def get(
    task_id: TaskIdArgument,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Print one task: status, plan, steps, answer, sources, reward."""
    with connected(server, ca, data, token_file) as client:
        task = client.get(task_id)
    _finish(task, reach(server, ca, data, token_file), as_json=as_json, good=True)


@tasks.command("list")
def list_tasks(
    status: Annotated[list[str] | None, typer.Option("--status", help="Only this status; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many.")] = 50,
    page_token: Annotated[str, typer.Option(help="Go on after an earlier page.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List tasks, newest first."""
    statuses = [_status(name) for name in status or ()]
    with connected(server, ca, data, token_file) as client:
        page = client.list(statuses=statuses, page_size=limit, page_token=page_token)
    if as_json:
        emit({"tasks": [summary_json(task) for task in page.tasks], "next_page_token": page.next_page_token})
        return
    show_list(page, Console(highlight=False), reach=reach(server, ca, data, token_file))


@tasks.command()
def watch(
    task_id: TaskIdArgument,
    after: Annotated[int, typer.Option(min=0, help="Only events after this sequence number.")] = 0,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Follow a task's events until it has ended or waits for a person; exit 0 only if it succeeded."""
    with connected(server, ca, data, token_file) as client:
        task = _follow(client, task_id, after_sequence=after)
    _finish(
        task,
        reach(server, ca, data, token_file),
        as_json=as_json,
        good=task.status == status_pb2.TASK_STATUS_SUCCEEDED,
    )


@tasks.command()
def answer(
    task_id: TaskIdArgument,
    text: Annotated[str, typer.Argument(help="The answer to the task's question.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the task until it ends or asks.")] = True,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Answer the question a task waits for; the task goes on. Exit 0 only if it then succeeded."""
    with connected(server, ca, data, token_file) as client:
        task = client.answer(task_id, text)
        if wait:
            task = _follow(client, task_id, after_sequence=task.last_sequence)
    _finish(
        task,
        reach(server, ca, data, token_file),
        as_json=as_json,
        good=task.status == status_pb2.TASK_STATUS_SUCCEEDED or not wait,
    )


@tasks.command()
def cancel(
    task_id: TaskIdArgument,
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """End a task early; exit 0 only if it is cancelled then."""
    with connected(server, ca, data, token_file) as client:
        task = client.cancel(task_id, reason)
    if task.status != status_pb2.TASK_STATUS_CANCELLED:
        raise Conflict(f"task {task_id} is {task_status_name(task.status)}: it ended before it could be cancelled")
    _finish(task, reach(server, ca, data, token_file), as_json=as_json, good=True)


@tasks.command("diagnose")
def diagnose_task(
    task_id: TaskIdArgument,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Name the first wrong step of a task, with its evidence and time; exit 0 when that could be told."""
    from conductor.diagnose import diagnose

    with connected(server, ca, data, token_file) as client:
        diagnosis = diagnose(events_of(client, task_id), local_specialists(data).registry)
    if as_json:
        emit(diagnosis_json(task_id, diagnosis))
        return
    console = Console()
    console.print(diagnosis.explanation, markup=False)
    if diagnosis.found:
        agent = f"{diagnosis.agent} {diagnosis.agent_version}".rstrip()
        where = f"step {diagnosis.step} ({agent})" if diagnosis.step is not None else "the plan"
        when = diagnosis.time.isoformat() if diagnosis.time else "unknown"
        console.print(f"First wrong: {where}, {diagnosis.code}, at {when}", markup=False)
        for item in diagnosis.evidence:
            console.print(f"  - {item}", markup=False)


@tasks.command("timeline")
def show_timeline(
    task_id: TaskIdArgument,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page for a browser; it needs no other file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what ran when, and what ran at the same time."""
    from conductor.timeline import timeline

    with connected(server, ca, data, token_file) as client:
        task = client.get(task_id)
        spans = timeline(events_of(client, task_id))
    if html is not None:
        _write_page(html, task, spans)
    if as_json:
        page = {"page": str(html)} if html is not None else {}
        emit({"task_id": task_id, "spans": [span_json(span) for span in spans], **page})
        return
    if html is not None:
        return
    sys.stdout.write(timeline_picture(spans, Console().width) + "\n")


def _write_page(path: Path, task: task_pb2.Task, spans: "Sequence[Span]") -> None:
    from conductor.timeline_page import Subject, timeline_page

    subject = Subject(
        task_id=task.task_id,
        status=task_status_name(task.status),
        request=task.text,
        trace_id=task.trace_id,
        route=tuple(route_words(task.route)),
    )
    try:
        path.write_text(timeline_page(subject, spans), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error.strerror}", field="html") from error
    say(f"wrote {path}")


def events_of(client: Client, task_id: str) -> list[event_pb2.Event]:
    """All events a task has now, without waiting for more."""
    last = client.get(task_id).last_sequence
    events: list[event_pb2.Event] = []
    for response in client.watch(task_id):
        events.append(response.event)
        if response.event.header.sequence >= last:
            break
    return events


def _follow(client: Client, task_id: str, *, after_sequence: int = 0) -> task_pb2.Task:
    """Show events on stderr until the task has ended or waits for a person."""
    progress = Progress()
    try:
        return _followed(client, task_id, after_sequence, progress)
    except KeyboardInterrupt:
        say(f"no longer followed; the task goes on: podium task watch {task_id}")
        raise


def _followed(client: Client, task_id: str, after_sequence: int, progress: Progress) -> task_pb2.Task:
    for response in client.watch(task_id, after_sequence=after_sequence):
        say(progress.line(response.event))
        if response.status in ENDED | WAITS_FOR_PERSON:
            task = client.get(task_id)
            if task.status in ENDED | WAITS_FOR_PERSON and task.last_sequence <= response.event.header.sequence:
                return task
    return client.get(task_id)


def _status(name: str) -> TaskStatus:
    try:
        return task_status_of(name)
    except ValueError as error:
        known = ", ".join(task_status_name(number) for number in status_pb2.TaskStatus.values() if number)
        raise InvalidRequest(f"there is no status {name!r}; there are {known}", field="status") from error


def _finish(task: task_pb2.Task, reach: str, *, as_json: bool, good: bool) -> None:
    if as_json:
        emit(task_json(task))
    else:
        show_task(task, Console(highlight=False), reach=reach)
    if not good:
        raise SystemExit(1)

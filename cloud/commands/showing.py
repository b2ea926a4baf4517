"""Tasks as people see them on a terminal of 80 columns."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from cloud.commands.presenting import latency_ms, route_words
from conductor.claims import cited
from podium.status import task_status_name
from podium.terminal import Console
from podium.v1 import result_pb2, status_pb2, task_pb2

if TYPE_CHECKING:
    from conductor.timeline import Span

_STATUS_STYLES = {
    status_pb2.TASK_STATUS_SUCCEEDED: "green",
    status_pb2.TASK_STATUS_FAILED: "red",
    status_pb2.TASK_STATUS_EXPIRED: "red",
    status_pb2.TASK_STATUS_WAITING_INPUT: "yellow",
    status_pb2.TASK_STATUS_WAITING_REVIEW: "yellow",
}
_LOCATION_SHOWN = 120
_BESIDE_THE_BARS = 24
"""Columns of a timeline that are neither label nor bar: borders, duration and outcome."""
_NARROWEST_BARS = 20


def show_task(task: task_pb2.Task, console: Console, *, reach: str) -> None:
    """Print a task: the answer with its sources, or what it waits for, or why there is none.

    Args:
        task: What the server said.
        console: Where to.
        reach: The options that lead to the same server, for the commands that are suggested.
    """
    status = Text(task_status_name(task.status), style=f"bold {_STATUS_STYLES.get(task.status, '')}".strip())
    spent = f", {latency_ms(task) / 1000:.1f} s" if task.HasField("update_time") else ""
    console.print(Text.assemble(f"Task {task.task_id}: ", status, spent))
    show_route(task, console)
    if task.HasField("result"):
        show_answer(task.result, console)
    elif task.HasField("question"):
        show_question(task, console)
        console.print(f'Answer with: podium task answer {task.task_id} "..."{reach}', markup=False, soft_wrap=True)
    if task.HasField("error"):
        console.print(f"{task.error.code}: {task.error.message}", markup=False)
        for item in task.error.evidence:
            console.print(f"  - {item}", markup=False)
        console.print(f"What to do: {task.error.next_step}", markup=False)
    if task.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
        console.print(f"A person must decide; see: podium review list{reach}", markup=False, soft_wrap=True)


def show_route(task: task_pb2.Task, console: Console) -> None:
    """Print who made the plan, and who else was asked for one; nothing before there is one to look at."""
    if len(task.route) > 1:
        for words in route_words(task.route):
            console.print(f"Planner {words}", style="dim", markup=False)
    elif task.planner:
        console.print(f"Planner {task.planner}", style="dim", markup=False)


def show_question(task: task_pb2.Task, console: Console) -> None:
    """Print what a task asks, and what could be answered."""
    console.print(task.question.text, markup=False)
    if task.question.suggestions:
        console.print(f"For example: {'; '.join(task.question.suggestions)}", markup=False)


def show_answer(result: result_pb2.Result, console: Console) -> None:
    """Print an answer, then the cited sources that it does not describe itself, and what it did without."""
    # Its Markdown and syntax libraries take a third of a second to load; most commands need none.
    from rich.markdown import Markdown

    console.print(Markdown(result.answer_markdown))
    if sources := sources_to_show(result):
        console.print("Sources:", style="bold")
        for source in sources:
            where = f" ({source.location[:_LOCATION_SHOWN]})" if source.location else ""
            console.print(f"  {source.id}: {source.label}{where}", markup=False)
    for gap in result.degraded:
        console.print(f"Done without: {gap}", markup=False)


def sources_to_show(result: result_pb2.Result) -> list[result_pb2.Source]:
    """The sources that the answer cites and does not describe itself, in order.

    What the other steps used is evidence for programs and reviews: `--json` has all of it.
    """
    text = result.answer_markdown
    named = set(cited(text))
    return [
        source
        for source in result.sources
        if source.id in named and not re.search(rf"(?<!\[)(?:Source|来源) {re.escape(source.id)}[:：]", text)
    ]


def show_list(page: task_pb2.ListTasksResponse, console: Console, *, reach: str) -> None:
    """Print tasks, newest first: a line with the id to copy, and one with the request."""
    if not page.tasks:
        console.print(f'No tasks here. Hand one in with: podium submit "..."{reach}', markup=False, soft_wrap=True)
    for task in page.tasks:
        moment = task.update_time.ToDatetime().strftime("%Y-%m-%d %H:%M:%S")
        status = Text(f"{task_status_name(task.status):<14}", style=_STATUS_STYLES.get(task.status, ""))
        console.print(Text.assemble(task.task_id, "  ", status, f"  {moment} UTC"), soft_wrap=True)
        request = Text(f"    {' '.join(task.text.split())}", no_wrap=True, overflow="ellipsis")
        console.print(request)
    if page.next_page_token:
        console.print(f"More with: --page-token {page.next_page_token}", markup=False, soft_wrap=True)


def timeline_picture(spans: "Sequence[Span]", columns: int) -> str:
    """The picture of a timeline, as wide as the terminal."""
    from conductor.timeline import label_width, render

    return render(spans, width=max(_NARROWEST_BARS, columns - label_width(spans) - _BESIDE_THE_BARS))


def wrapped(text: str, columns: int, indent: str) -> Iterable[str]:
    """The lines of a text under an indentation."""
    return textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=indent)

"""`podium demo`: the main job, shown and checked."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from cloud.commands.connection import JsonOption, say
from cloud.demo.story import Outcome, Story
from podium.cli import emit
from podium.status import task_status_name

DEMO_FOLDER = Path("var") / "demo"

app = typer.Typer()


@app.command()
def demo(
    data: Annotated[
        Path | None, typer.Option("--data", help="An empty folder for its files. Default: a new one in var/demo.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the main job on this machine and check every answer; exit 0 only if all are right.

    Starts a cloud with TLS and a device that watches a folder, both on loopback. Asks the sales question in
    Chinese and in English, a question that needs a clarifying answer, and has two scanned invoices checked: a
    clean one and one photographed askew with three planted faults. The sales answers are compared with SQL written
    by hand, the invoices with what was drawn into them.
    """
    folder = data or DEMO_FOLDER / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    for outcome in Story(folder, say).outcomes():
        outcomes.append(outcome)
        if not as_json:
            _show(outcome)
    ok = not any(outcome.wrong for outcome in outcomes)
    if as_json:
        emit({"tasks": [outcome.to_json() for outcome in outcomes], "ok": ok})
    else:
        _sum_up(outcomes, folder, ok=ok)
    if not ok:
        raise SystemExit(1)


def _show(outcome: Outcome) -> None:
    console = Console()
    console.rule(f"{outcome.name}: {outcome.task.text}")
    if outcome.task.HasField("result"):
        console.print(Markdown(outcome.task.result.answer_markdown))
        console.print("Sources:", style="bold")
        for source in outcome.task.result.sources:
            console.print(f"  {source.id}: {source.kind}, {source.label}, {source.location[:120]}", markup=False)
    console.print("What ran when:", style="bold")
    sys.stdout.flush()
    console.print(outcome.timeline, markup=False, highlight=False, soft_wrap=True)
    verdict = "right" if not outcome.wrong else "WRONG: " + "; ".join(outcome.wrong)
    console.print(f"Checked independently: {verdict}", markup=False)


def _sum_up(outcomes: list[Outcome], folder: Path, *, ok: bool) -> None:
    console = Console()
    console.rule("Podium demo")
    for outcome in outcomes:
        verdict = "right" if not outcome.wrong else "WRONG"
        reward = outcome.task.reward.final
        status = task_status_name(outcome.task.status)
        console.print(f"  {outcome.name:<18} {status:<10} {verdict:<6} reward {reward:.3f}", markup=False)
    console.print(f"Reports:   {folder / 'reports'}", markup=False)
    console.print(f"Event log: {folder / 'events.sqlite'}", markup=False)
    console.print(f"Look into one: podium task list --data {folder}", markup=False)
    console.print("All answers are right." if ok else "Some answers are wrong.", style="bold")

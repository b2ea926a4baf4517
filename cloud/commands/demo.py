"""`podium demo`: the main job, shown and checked."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cloud.commands.connection import JsonOption, say
from cloud.commands.showing import show_answer, show_route, timeline_picture
from podium.cli import emit
from podium.status import task_status_name
from podium.terminal import Console

if TYPE_CHECKING:
    from cloud.demo.story import Outcome

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

    Starts a cloud with TLS, enrols a device and has it watch a folder, both on loopback. Asks the sales question
    in Chinese and in English, a question that needs a clarifying answer, and has two scanned invoices checked: a
    clean one and one photographed askew with three planted faults. Registers an agent that no rule speaks of, and
    asks what only the trained planner can plan. Says of each answer which planner it was. The sales answers are
    compared with SQL written by hand, the invoices with what was drawn into them.
    """
    from cloud.demo.story import Story

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


def _show(outcome: "Outcome") -> None:
    console = Console(highlight=False)
    console.rule(outcome.name)
    console.print(f"Request: {outcome.task.text}", markup=False)
    if outcome.task.HasField("result"):
        show_answer(outcome.task.result, console)
    show_route(outcome.task, console)
    console.print("What ran when:", style="bold")
    console.print(timeline_picture(outcome.spans, console.width), markup=False, soft_wrap=True)
    verdict = ("right", "bold green") if not outcome.wrong else ("WRONG: " + "; ".join(outcome.wrong), "bold red")
    console.print(Text.assemble("Checked independently: ", verdict))


def _sum_up(outcomes: "list[Outcome]", folder: Path, *, ok: bool) -> None:
    console = Console(highlight=False)
    console.rule("Podium demo")
    for outcome in outcomes:
        verdict = "right" if not outcome.wrong else "WRONG"
        reward = outcome.task.reward.final
        status = task_status_name(outcome.task.status)
        by = f"by {outcome.task.result.planner or 'nobody'}"
        line = f"  {outcome.name:<18} {status:<10} {verdict:<6} {by:<10} reward {reward:.3f}"
        console.print(line, markup=False)
    console.print(f"Reports:   {folder / 'reports'}", markup=False, soft_wrap=True)
    console.print(f"Event log: {folder / 'events.sqlite'}", markup=False, soft_wrap=True)
    console.print(f"Look into them: podium task list --data {folder}", markup=False, soft_wrap=True)
    console.print("All answers are right." if ok else "Some answers are wrong.", style="bold")

"""`podium eval ...`: score what a planner wrote, in a process that never planned."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Column, Table

from cloud.commands.connection import JsonOption, say
from podium.cli import emit
from podium.terminal import Console

if TYPE_CHECKING:
    from conductor.evaluation.report import Report

app = typer.Typer(name="eval", help="Score plans against the right ones, beside baselines.", no_args_is_help=True)


@app.callback()
def keep_commands_named() -> None:
    """Score plans against the right ones, beside baselines."""


@app.command()
def plans(
    mode: Annotated[
        Literal["mean", "micro", "accept"],
        typer.Option(help="mean: averages over requests; micro: counts over all; accept: accepted values."),
    ],
    gold: Annotated[Path, typer.Option(help='The right plans, {"id", "steps"} a line.')],
    predictions: Annotated[Path, typer.Option(help="What `podium plan --batch` wrote.")],
    baseline: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: predictions to stand beside; may be repeated.")
    ] = None,
    mark: Annotated[
        list[str] | None,
        typer.Option(help="FIGURE=PERCENT to be reached, e.g. node_f1=85; may be repeated."),
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Bootstrap samples.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Score predicted plans; a missing or unusable prediction is wrong. Exit 1 if a mark is missed.

    Figures are in percent, with 95 % bootstrap intervals over requests.
    """
    from conductor.evaluation.report import evaluate, marks_of, named_values

    report = evaluate(
        mode=mode,
        gold=gold,
        predictions=predictions,
        baselines={name: Path(file) for name, file in named_values(baseline or (), "--baseline").items()},
        marks=marks_of(mark or ()),
        resamples=resamples,
        seed=seed,
    )
    if as_json:
        emit(report.to_json())
    else:
        _show(report)
    for missed in report.missed:
        say(f"Missed: {missed}")
    if report.missed:
        raise SystemExit(1)


def _show(report: "Report") -> None:
    console = Console(highlight=False)
    figures = tuple(report.rows[0].figures)
    table = Table(Column("", no_wrap=True), *figures, "missing", "steps", "parallel", "p50 ms", box=None)
    for row in report.rows:
        cells = [f"{value.value:.1f} [{value.low:.1f}, {value.high:.1f}]" for value in row.figures.values()]
        latency = row.shape.latency_ms
        table.add_row(
            row.name,
            *cells,
            str(row.missing),
            "" if row.shape.steps is None else f"{row.shape.steps:.2f}",
            "" if row.shape.parallelism is None else f"{row.shape.parallelism:.2f}",
            "" if latency is None else f"{latency['p50']:.1f}",
        )
    console.print(table)
    console.print(
        f"{report.requests} requests, mode {report.mode}; in brackets 95 % of {report.resamples} resamples.",
        markup=False,
    )
    for row in report.rows:
        faults = {
            "unusable lines": row.invalid,
            "ids again": row.repeated,
            "ids without gold": row.unknown,
        }
        said = ", ".join(f"{count} {what}" for what, count in faults.items() if count)
        if said:
            say(f"{row.name}: {said}")

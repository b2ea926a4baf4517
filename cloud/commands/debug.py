"""`podium debug` and `podium reward-debug`: why was a request understood so, and a task judged so?"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    SettingsOption,
    TokenFileOption,
    connected,
    local_specialists,
)
from cloud.commands.moments import moment
from cloud.commands.presenting import reward_json
from podium.cli import emit
from podium.errors import Conflict, InvalidRequest
from podium.status import task_status_name
from podium.terminal import Console

app = typer.Typer()


@app.command()
def debug(
    normalize: Annotated[str, typer.Option("--normalize", metavar="TEXT", help="The request to look at.")],
    now: Annotated[str | None, typer.Option("--now", help="What 'last quarter' refers to, ISO.")] = None,
    data: SettingsOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show the normal form of a request: entities, dates, numbers, corrections, and what was not understood."""
    if not normalize.strip():
        raise InvalidRequest("the text is empty", field="normalize")
    understood = dict(local_specialists(data).normalise(normalize, moment(now) or datetime.now(UTC), ()))
    if as_json:
        emit(understood | {"original": normalize})
        return
    _show(understood)


def _show(understood: Mapping[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(f"{understood['language']}: {understood['text']}", markup=False)
    table = Table("Kind", "Said", "Means", "By", "Confidence", box=None)
    for kind, entities in understood["entities"].items():
        for entity in entities:
            means = ", ".join(map(str, entity["values"]))
            quantity = entity.get("quantity")
            if quantity:
                means = f"{quantity['operator'] or ''} {means}".strip()
            if entity.get("period"):
                means = " to before ".join(entity["values"])
            table.add_row(kind, entity["text"], means, entity["origin"], f"{entity['confidence']:.2f}")
    console.print(table)
    for item in understood["corrections"]:
        if item["reason"] != "unicode_form":
            console.print(
                f"Corrected: {item['original']} → {item['replacement']} ({item['reason']})", markup=False
            )
    for item in understood["unresolved"]:
        console.print(f"Not understood: {item['text'] if isinstance(item, dict) else item}", markup=False)


@app.command("reward-debug")
def reward_debug(
    task_id: Annotated[str, typer.Option("--task-id", help="The task's id.")],
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Explain a task's reward: every term with its value, weight, step and origin."""
    from conductor.reward import WEIGHTS

    with connected(server, ca, data, token_file) as client:
        task = client.get(task_id)
    if not task.HasField("reward"):
        raise Conflict(
            f"task {task_id} is {task_status_name(task.status)} and has no reward yet",
            next_step="Wait until it has ended: podium task watch.",
        )
    terms = [
        {
            "name": term.name,
            "value": round(term.value, 4),
            "origin": term.origin,
            "step": term.step if term.HasField("step") else None,
        }
        for term in task.reward.terms
    ]
    reward = reward_json(task.reward)
    if as_json:
        emit({"task_id": task_id, "reward": reward, "weights": WEIGHTS, "terms": terms})
        return
    console = Console(highlight=False)
    parts = " + ".join(f"{weight} × {reward[name]:.3f} {name}" for name, weight in WEIGHTS.items())
    console.print(f"{reward['final']:.3f} = {parts}", markup=False)
    table = Table("Term", "Value", "Step", "Origin", box=None)
    for term in terms:
        step = "" if term["step"] is None else str(term["step"])
        table.add_row(str(term["name"]), f"{term['value']:.3f}", step, str(term["origin"]))
    console.print(table)

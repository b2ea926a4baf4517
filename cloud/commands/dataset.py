"""`podium dataset ...`: what people corrected, as versioned training sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cloud.commands.connection import DEFAULT_DATA, JsonOption, say
from podium.cli import emit
from podium.errors import InvalidRequest
from podium.terminal import Console

if TYPE_CHECKING:
    from cloud.training_sets import TrainingSet
    from conductor.training.corrections import Known

app = typer.Typer(name="dataset", help="Make training sets of what people corrected.", no_args_is_help=True)

DirectoryOption = Annotated[
    Path, typer.Option("--data", envvar="PODIUM_DATA", help="Data directory with the event log.")
]
_SHOWN = 16
"""Characters of a version that people see."""


@app.command()
def build(
    name: Annotated[str, typer.Option("--name", help="Name of the set, in the data directory.")] = "corrections",
    out: Annotated[Path | None, typer.Option("--out", help="A new folder to write into instead.")] = None,
    min_reward: Annotated[
        float | None,
        typer.Option("--min-reward", min=0, max=1, help="Also tasks nobody took part in, from this reward on."),
    ] = None,
    without_tenant: Annotated[
        list[str] | None, typer.Option("--without-tenant", help="Leave this tenant's requests out; repeatable.")
    ] = None,
    without_caller: Annotated[
        list[str] | None, typer.Option("--without-caller", help="Leave this caller's requests out; repeatable.")
    ] = None,
    without_reviewer: Annotated[
        list[str] | None, typer.Option("--without-reviewer", help="Leave this person's plans out; repeatable.")
    ] = None,
    data: DirectoryOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make a training set of the plans that people gave or accepted, from the event log; a server may be running.

    The same log, agents and options give the same version. A set holds callers' words: the manifest says whose.
    """
    from cloud.event_logs import read_logs
    from cloud.training_sets import FOLDER, checked_name, put, stored
    from conductor.training.corrections import Collection, Wanted, manifest

    checked_name(name)
    wanted = Wanted(
        min_reward=min_reward,
        without_tenants=frozenset(without_tenant or ()),
        without_callers=frozenset(without_caller or ()),
        without_reviewers=frozenset(without_reviewer or ()),
    )
    collection = Collection(wanted=wanted, known=_known(data))
    for _, events in read_logs(data):
        collection.add(events)
    rows = collection.build()
    before = [] if out is not None else [item.version for item in stored(data, name)]
    about = manifest(name, rows, collection, parent=before[0] if before else None)
    folder = out if out is not None else data / FOLDER / name / about["version"][:_SHOWN]
    made = put(folder, rows, about)
    if as_json:
        emit({"folder": str(folder), "new": about["version"] not in before, "manifest": dict(made.manifest)})
        return
    _show(made)


@app.command("list")
def list_sets(data: DirectoryOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """List the training sets in a data directory, the newest of each name first."""
    from cloud.training_sets import stored

    sets = stored(data)
    if as_json:
        emit({"sets": [{"folder": str(item.folder), "manifest": dict(item.manifest)} for item in sets]})
        return
    if not sets:
        Console(highlight=False).print("There are no training sets here.")
        return
    table = Table("Set", "Version", "Rows", "Kinds", "Tenants", "Newest", box=None)
    for item in sets:
        told = item.manifest
        newest = str(told.get("last_time") or "-")[:19]
        table.add_row(
            str(told["name"]),
            item.version[:_SHOWN],
            str(told["rows"]),
            _counted(told["kinds"]),
            _counted(told["tenants"]),
            newest,
        )
    Console(highlight=False).print(table)


@app.command()
def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A version: NAME, NAME@VERSION, VERSION or a folder.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    data: DirectoryOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Compare two training sets: rows that came, went or changed."""
    from cloud.training_sets import find
    from conductor.training.corrections import Difference

    old, new = find(data, before), find(data, after)
    found = Difference.between(old.rows(), new.rows())
    if as_json:
        changed = [{"id": key, "fields": list(fields)} for key, fields in found.changed.items()]
        lists: dict[str, Any] = {"added": list(found.added), "removed": list(found.removed), "changed": changed}
        emit({"before": old.version, "after": new.version, **lists, "same": found.same})
        return
    console = Console(highlight=False)
    for key in found.added:
        console.print(f"+ {key}", markup=False)
    for key in found.removed:
        console.print(f"- {key}", markup=False)
    for key, fields in found.changed.items():
        console.print(f"~ {key}: {', '.join(fields)}", markup=False)
    console.print(
        f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed, {found.same} same"
    )


def _known(data: Path) -> "Known":
    """The agents of the packs and those registered with the data directory."""
    from cloud.commands.plan import specialists_of
    from conductor.clarifying import asks_caller
    from conductor.policy.agent_cards import cards_of
    from conductor.training.corrections import Known

    agents = specialists_of(data).registry.all_versions()
    if not agents:
        raise InvalidRequest("there are no agents, whose descriptions the rows need", field="data")
    asking = frozenset(agent.spec.name for agent in agents if asks_caller(agent))
    return Known(cards=cards_of(agents), asking=asking)


def _show(made: "TrainingSet") -> None:
    told = made.manifest
    console = Console(highlight=False)
    console.print(f"{told['rows']} rows, version {made.version[:_SHOWN]}, in {made.folder}", soft_wrap=True)
    for what in ("kinds", "tenants", "callers", "reviewers", "left_out"):
        if told[what]:
            console.print(f"  {what.replace('_', ' ')}: {_counted(told[what])}", markup=False)
    if told["rows"] == 0:
        say("nobody has given or accepted a plan yet; see podium review list")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "-"

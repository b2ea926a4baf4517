"""`podium artefacts ...`: versions of agents, planners, models, adapters, bundles; which is current, and why."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cloud.commands.artefact_keys import commands as key_commands
from cloud.commands.artefact_showing import (
    artefact_json,
    cells,
    change_json,
    current_json,
    difference,
    print_fields,
)
from cloud.commands.artefact_store import (
    DATA_HELP,
    ByOption,
    ExpectedOption,
    KeyOption,
    WhyOption,
    json_object,
    media_type_of,
    opened,
    signatures_from,
    signed_by,
    who,
)
from cloud.commands.connection import DEFAULT_DATA, JsonOption
from podium.cli import emit, require
from podium.errors import InvalidRequest
from podium.terminal import Console
from tools.artefacts.checking import faults, unused_files
from tools.artefacts.records import KINDS, Current, Description, Name, Reference
from tools.models.pinned import committed_models

# A device has no use for a registry, and its checks need this library.
require("cryptography")

app = typer.Typer(
    name="artefacts",
    help="Versions of agents, planners, models, adapters and bundles.",
    no_args_is_help=True,
)
app.add_typer(key_commands)

_DataOption = Annotated[Path, typer.Option("--data", envvar="PODIUM_DATA", help=DATA_HELP)]
_ReferenceArgument = Annotated[str, typer.Argument(metavar="KIND/NAME@VERSION", help="One version.")]
_NameArgument = Annotated[str, typer.Argument(metavar="KIND/NAME", help="What has versions.")]


@app.command()
def add(
    reference: _ReferenceArgument,
    file: Annotated[Path | None, typer.Argument(help="The file; not for --package.")] = None,
    package: Annotated[
        str | None, typer.Option("--package", help="A model of the committed list instead of a file.")
    ] = None,
    signature: Annotated[
        list[Path] | None, typer.Option("--signature", help="File of `artefacts sign`; may be repeated.")
    ] = None,
    key: KeyOption = None,
    media_type: Annotated[str, typer.Option(help="Of the file; told by its name unless given.")] = "",
    parent: Annotated[
        list[str] | None, typer.Option("--parent", help="KIND/NAME@VERSION it was made from; may be repeated.")
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="JSON object, or @FILE with one: how good it was found to be.")
    ] = "",
    trial: Annotated[str, typer.Option(help="JSON object, or @FILE: what an ONNX model's trial is fed.")] = "",
    note: WhyOption = "",
    by: ByOption = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Add a version: a signed file, or a model of an installed package that is in the committed list."""
    if (file is None) == (package is None):
        raise InvalidRequest("give either a FILE or --package NAME", field="file")
    listed = None if package is None else committed_models().entry(package).file
    description = Description(
        reference=Reference.parse(reference),
        media_type=media_type or media_type_of(file if listed is None else Path(listed)),
        parents=tuple(Reference.parse(item) for item in parent or ()),
        metrics=json_object(metrics, "metrics"),
        trial=json_object(trial, "trial"),
    )
    person = who(by, note)
    with opened(data, make=True) as registry:
        if package is not None:
            artefact = registry.add_packaged(description, package, who=person)
        else:
            source = file or Path()
            signatures = [*signatures_from(signature or ()), *signed_by(key, description, source)]
            artefact = registry.add(description, source, who=person, signatures=tuple(signatures))
    if as_json:
        emit(artefact_json(artefact))
    else:
        _say(f"{artefact.reference} is here, SHA-256 {artefact.sha256}")


@app.command("list")
def list_artefacts(
    kind: Annotated[str, typer.Option(help=f"Only {', '.join(KINDS)}.")] = "",
    name: Annotated[str, typer.Option(help="Only this name.")] = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List versions in the order they were added, with which is current."""
    if kind and kind not in KINDS:
        raise InvalidRequest(f"kind {kind!r} is not one of {', '.join(KINDS)}", field="kind")
    with opened(data) as registry:
        found = registry.list(kind=kind or None, name=name or None)
        currents = {item: registry.current(item) for item in {artefact.reference.name for artefact in found}}
    if as_json:
        current = [current_json(item) for _, item in sorted(currents.items()) if item is not None]
        emit({"artefacts": [artefact_json(item) for item in found], "current": current})
        return
    table = Table("Artefact", "Size", "Added", "By", "Standing", box=None)
    for item in found:
        standing = _standing(currents[item.reference.name], item.reference)
        added = f"{item.created_at:%Y-%m-%d %H:%M}"
        table.add_row(*cells(str(item.reference), f"{item.size_bytes:,}", added, item.created_by, standing))
    Console(highlight=False).print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="KIND/NAME[@VERSION]", help="A version, or the current one.")],
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show a version: hash, lineage, metrics, who signed it; of an ONNX model what it takes and gives."""
    from tools.artefacts.errors import NothingCurrent

    with opened(data) as registry:
        if "@" in name:
            reference = Reference.parse(name)
            current = registry.current(reference.name)
        else:
            current = registry.current(Name.parse(name))
            if current is None:
                raise NothingCurrent(f"no version of {name} is current")
            reference = Reference(name=current.name, version=current.version)
        artefact = registry.get(reference)
        fault = registry.fault(artefact)
        inspection = None if fault is not None else registry.inspection(artefact)
    shown = artefact_json(artefact) | {
        "current": current is not None and current.version == reference.version,
        "pinned": current is not None and current.version == reference.version and current.pinned,
        "fault": None if fault is None else {"code": fault.code, "message": fault.message},
        "onnx": None if inspection is None else inspection.to_json(),
    }
    if as_json:
        emit(shown)
    else:
        print_fields(shown)


@app.command()
def promote(
    reference: _ReferenceArgument,
    why: WhyOption = "",
    by: ByOption = "",
    expected: ExpectedOption = None,
    new_interface: Annotated[
        bool, typer.Option("--new-interface", help="A model may take and give something else than the one before.")
    ] = False,
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make a version current, after it was verified, looked at and tried."""
    with opened(data) as registry:
        current = registry.promote(
            Reference.parse(reference), who=who(by, why), expected=expected, new_interface=new_interface
        )
    _tell(current, as_json=as_json)


@app.command()
def rollback(
    name: _NameArgument,
    why: WhyOption = "",
    by: ByOption = "",
    expected: ExpectedOption = None,
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Make the version current that was before, or the one before that if it does not load any more."""
    with opened(data) as registry:
        current = registry.roll_back(Name.parse(name), who=who(by, why), expected=expected)
    _tell(current, as_json=as_json)


@app.command()
def pin(
    name: _NameArgument,
    why: WhyOption = "",
    by: ByOption = "",
    expected: ExpectedOption = None,
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Keep the current version: no promotion and no rollback until it is unpinned."""
    with opened(data) as registry:
        current = registry.pin(Name.parse(name), who=who(by, why), expected=expected)
    _tell(current, as_json=as_json)


@app.command()
def unpin(
    name: _NameArgument,
    why: WhyOption = "",
    by: ByOption = "",
    expected: ExpectedOption = None,
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Let the current version move again."""
    with opened(data) as registry:
        current = registry.unpin(Name.parse(name), who=who(by, why), expected=expected)
    _tell(current, as_json=as_json)


@app.command()
def history(
    name: Annotated[str, typer.Argument(metavar="[KIND/NAME]", help="Only of this name.")] = "",
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show who moved which current version, when and why, oldest first."""
    with opened(data) as registry:
        changes = registry.changes(Name.parse(name) if name else None)
    if as_json:
        emit({"changes": [change_json(change) for change in changes]})
        return
    table = Table("When", "What", "From", "To", "By", "Why", box=None)
    for item in changes:
        when = f"{item.at:%Y-%m-%d %H:%M:%S}"
        what = f"{item.action} {item.name}"
        table.add_row(*cells(when, what, item.from_version, item.to_version, item.by, item.why))
    Console(highlight=False).print(table)


@app.command()
def diff(
    left: _ReferenceArgument,
    right: _ReferenceArgument,
    data: _DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show two versions side by side: hash, size, lineage, metrics; of ONNX models versions and shapes too."""
    with opened(data) as registry:
        both = [registry.get(Reference.parse(item)) for item in (left, right)]
        looks = [registry.inspection(item) if registry.fault(item) is None else None for item in both]
    rows = difference(both[0], both[1], looks[0], looks[1])
    if as_json:
        emit({"left": left, "right": right, "same_content": both[0].sha256 == both[1].sha256, "fields": rows})
        return
    table = Table("Field", left, right, box=None)
    for row in rows:
        texts = cells(row["field"], _short(row["left"]), _short(row["right"]))
        table.add_row(*texts, style="bold" if row["differs"] else "")
    Console(highlight=False).print(table)


@app.command()
def verify(data: _DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """Hash every file again, check who answers for it and each history; exit 0 only if all is well."""
    with opened(data) as registry:
        count, found, unused = len(registry.list()), faults(registry), unused_files(registry)
    if as_json:
        listed = [{"what": item.what, "code": item.error.code, "message": item.error.message} for item in found]
        emit({"ok": not found, "checked": count, "faults": listed, "unused_files": list(unused)})
    else:
        for item in found:
            _say(f"{item.what}: {item.error.code}: {item.error.message}")
        _say(f"{count} versions checked, {len(found)} faults, {len(unused)} files that no version names")
    if found:
        raise SystemExit(1)


def _tell(current: Current, *, as_json: bool) -> None:
    if as_json:
        emit(current_json(current))
    else:
        _say(f"{current.version} of {current.name} is current" + (" and pinned" if current.pinned else ""))


def _standing(current: Current | None, reference: Reference) -> str:
    if current is None or current.version != reference.version:
        return ""
    return "current, pinned" if current.pinned else "current"


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _say(text: str) -> None:
    Console(highlight=False).print(text, markup=False, soft_wrap=True)

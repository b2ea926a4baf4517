"""Readers of the public planning data, each file in the neutral form that `DATA/README.md` describes.

The folder is given (`PODIUM_PLANNING_DATA`, `--data`); nothing is downloaded.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conductor.policy.cards import ToolCard
from conductor.training.examples import Example, GoldStep
from podium.errors import InvalidRequest

BFCL = ("simple_python", "multiple", "live_simple", "live_multiple")
DATA_VARIABLE = "PODIUM_PLANNING_DATA"


class TrainingDataInvalid(InvalidRequest):
    """A file of training data that is missing or not in the neutral form."""

    code = "TRAINING_DATA_INVALID"
    advice = f"Point {DATA_VARIABLE} or --data at the folder with ultratool/, nestools/, sealtools/ and bfcl/."


def data_folder() -> Path:
    """The folder that `PODIUM_PLANNING_DATA` names.

    Raises:
        TrainingDataInvalid: it is not set or no folder.
    """
    named = os.environ.get(DATA_VARIABLE, "")
    if not named or not Path(named).is_dir():
        raise TrainingDataInvalid(f"{DATA_VARIABLE} names no folder: {named!r}")
    return Path(named)


def read_ultratool(data: Path) -> tuple[Example, ...]:
    """2,589 requests over one registry of 260 tools without schemas."""
    return read_examples(data / "ultratool", source="ultratool")


def ultratool_links(data: Path) -> frozenset[tuple[str, str]]:
    """The benchmark's allowed links (tool, tool that may follow it)."""
    return frozenset((first, second) for first, second in _json(data / "ultratool" / "tools.json")["links"])


def read_nestools(data: Path) -> tuple[Example, ...]:
    """400 requests with nested calls, each with its own 16 to 20 candidate tools."""
    return read_examples(data / "nestools", source="nestools")


def read_sealtools(data: Path) -> tuple[Example, ...]:
    """700 requests over one registry of 4,076 tools."""
    return read_examples(data / "sealtools", source="sealtools")


def read_bfcl(data: Path) -> tuple[Example, ...]:
    """1,911 single calls; the gold names accepted values instead of arguments."""
    return tuple(
        example for name in BFCL for example in read_examples(data / "bfcl" / name, source=f"bfcl/{name}")
    )


def read_examples(folder: Path, *, source: str) -> tuple[Example, ...]:
    """The examples of one folder in the neutral form.

    Raises:
        TrainingDataInvalid: a file is missing or a line has another form; file and line are named.
    """
    registry = folder / "tools.json"
    shared = _cards(_json(registry)["tools"]) if registry.exists() else ()
    gold = {str(row["id"]): row for row in rows_of(folder / "gold.jsonl")}
    found = []
    for row in rows_of(folder / "requests.jsonl"):
        key = str(row["id"])
        if key not in gold:
            raise TrainingDataInvalid(f"{folder / 'gold.jsonl'} has no plan for {key}")
        tools = _cards(row["tools"]) if "tools" in row else shared
        steps = tuple(step_from_row(step) for step in gold[key]["steps"])
        found.append(Example(source=source, id=key, request=row["request"], tools=tools, steps=steps))
    return tuple(found)


def step_from_row(row: Mapping[str, Any]) -> GoldStep:
    """A step of gold in its JSON form."""
    accept = row.get("accept")
    return GoldStep(
        tool=row["tool"],
        arguments=row.get("arguments", {}),
        accept=None if accept is None else {name: tuple(values) for name, values in accept.items()},
        depends_on=tuple(row.get("depends_on", ())),
        text=row.get("text", ""),
    )


def _cards(rows: list[dict[str, Any]]) -> tuple[ToolCard, ...]:
    return tuple(ToolCard.from_json(row) for row in rows)


def _json(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingDataInvalid(f"{path}: {error}") from error
    return value


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line.

    Raises:
        TrainingDataInvalid: the file is missing or a line is no JSON.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TrainingDataInvalid(f"{path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError as error:
            raise TrainingDataInvalid(f"{path}:{number}: {error}") from error

"""A tiny folder of planning data in the neutral form, for tests of training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOOLS = (
    ("search_train", "Finds trains"),
    ("book_train", "Books a train ticket"),
    ("weather_query", "Says what the weather will be"),
    ("clock_alarm_set", "Sets an alarm"),
    ("clock_alarm_cancel", "Cancels an alarm"),
    ("send_email", "Sends an email"),
    ("file_write", "Writes a file"),
    ("file_delete", "Deletes a file"),
)
_WORDS = {
    "search_train": "find a train to Shanghai",
    "book_train": "book the train ticket",
    "weather_query": "check the weather in Beijing",
    "clock_alarm_set": "set an alarm for 7 AM",
    "clock_alarm_cancel": "cancel my alarm",
    "send_email": "send an email to Li",
    "file_write": "write a note to a file",
    "file_delete": "delete the file",
}


def write_planning_data(folder: Path, *, rows: int = 160) -> None:
    """Write ultratool, nestools, sealtools and bfcl of a few rows each."""
    tools = [{"name": name, "description": text} for name, text in _TOOLS]
    names = [name for name, _ in _TOOLS]
    links = [[a, b] for at, a in enumerate(names) for b in (names[(at + 1) % 8], names[(at + 3) % 8])]
    requests, gold = [], []
    for number in range(rows):
        first, second = links[number % len(links)]
        request = f"Please {_WORDS[first]} and {_WORDS[second]}, order {number}."
        requests.append({"id": str(number), "request": request})
        steps = [_step(first, []), _step(second, [0])]
        gold.append({"id": str(number), "steps": steps})
    _write(folder / "ultratool", requests, gold, {"tools": tools, "links": links})
    own = [
        {"id": f"n{number}", "request": f"{_WORDS[names[number % 8]]} {number}", "tools": tools}
        for number in range(40)
    ]
    own_gold = [{"id": f"n{number}", "steps": [_step(names[number % 8], [])]} for number in range(40)]
    _write(folder / "nestools", own, own_gold, None)
    seal = [{"id": f"s{number}", "request": f"{_WORDS[names[number % 8]]} {number}"} for number in range(40)]
    seal_gold = [{"id": f"s{number}", "steps": [_step(names[number % 8], [])]} for number in range(40)]
    _write(folder / "sealtools", seal, seal_gold, {"tools": tools})
    for name in ("simple_python", "multiple", "live_simple", "live_multiple"):
        _write(folder / "bfcl" / name, own, own_gold, None)


def _step(tool: str, needs: list[int]) -> dict[str, Any]:
    return {"tool": tool, "arguments": {}, "depends_on": needs, "text": f"Call {tool} to {_WORDS[tool]}"}


def _write(
    folder: Path, requests: list[dict[str, Any]], gold: list[dict[str, Any]], registry: dict[str, Any] | None
) -> None:
    folder.mkdir(parents=True)
    for name, rows in (("requests", requests), ("gold", gold)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if registry is not None:
        (folder / "tools.json").write_text(json.dumps(registry))


def none_alike(first: Sequence[int], second: Sequence[int]) -> NDArray[np.bool_]:
    """No tool reads like another; see `conductor.training.selector_batches.Nearness.alike`."""
    return np.zeros((len(first), len(second)), dtype=np.bool_)

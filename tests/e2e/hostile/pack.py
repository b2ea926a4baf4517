"""The pack of the matrix: an agent and a plan for every cell."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents.contract import SOURCES_SCHEMA
from tests.cases.hostile_process import misbehaving
from tests.e2e.hostile.cells import Cell
from tests.integration.server import ROOT

HERE = "tests.e2e.hostile.agents"
_TEXT = {"type": "string", "maxLength": 1000}
_POPULATION = {"type": "integer", "minimum": 0}
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "process": {"word": "", "server": 0, "secret_file": "/nowhere"},
    "openai": {"word": ""},
    "a2a": {"city": "Suzhou"},
    "mcp_http": {"city": "Suzhou"},
    "mcp_stdio": {"city": "Suzhou"},
    "grpc": {"do": ""},
    "onnx": {"word": ""},
    "device": {"word": ""},
}
"""What the agents of a column are given; an empty text stands for the cell's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the fakes are."""

    model: str
    a2a: str
    mcp: str
    host: str


def manifest(cell: Cell, places: Places) -> dict[str, Any]:
    """Of a cell's agent."""
    given = _arguments(cell)
    counting = cell.engine in ("a2a", "mcp_http", "mcp_stdio")
    said: dict[str, Any] = {"population": _POPULATION} if counting else {"said": {"type": "string"}}
    if cell.word == "other_schema":
        said["said"]["maxLength"] = 7
    inputs = {
        name: dict(_TEXT) if isinstance(value, str) else {"type": "integer"} for name, value in given.items()
    }
    settings = {**_settings(cell, places), **cell.settings}
    if cell.fallback:
        settings["fallback"] = f"{cell.name}_good"
    return {
        "name": cell.name,
        "version": "1.0.0",
        "description": f"Of the hostile matrix, {cell.engine}: {cell.hostility}, by way of {cell.word}.",
        "capability_tags": [f"hostile_{cell.name}"],
        "engine": cell.engine.partition("_")[0],
        "settings": settings,
        "sla": {"timeout": cell.timeout_s, "retries": cell.retries},
        "limits": {
            "max_output_bytes": 100_000,
            "memory_bytes": 200_000_000,
            "cpu_seconds": 4.0 if cell.engine == "mcp_stdio" else 1.0,
            "max_processes": 8,
        },
        "input_schema": _object(inputs),
        "output_schema": _object(
            {
                **said,
                "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
                "sources": dict(SOURCES_SCHEMA),
            }
        ),
    }


def _settings(cell: Cell, places: Places) -> dict[str, Any]:
    match cell.engine:
        case "process":
            folder = str(Path(misbehaving.__file__).parent)
            return {
                "callable": "misbehaving:misbehave",
                "path": folder,
                "scratch_bytes": 8_000_000,
                "idle_seconds": 1,
            }
        case "openai":
            return {"base_url": places.model, "model": cell.word, "max_confidence": 0.6}
        case "a2a":
            return {"card": places.a2a, "skill": cell.word, "confidence": 0.7}
        case "mcp_http":
            return {"url": places.mcp, "tool": cell.word, "confidence": 0.7}
        case "mcp_stdio":
            module = "tests.cases.hostile_mcp_server" if ":" in cell.word else "tests.fakes.mcp_server"
            return {
                "command": [sys.executable, "-m", module],
                "env": ["PYTHONPATH"],
                "path": str(ROOT),
                "tool": "misbehave" if ":" in cell.word else cell.word,
                "confidence": 0.7,
            }
        case "grpc":
            return {"endpoints": [places.host], "agent": "behave", "insecure_loopback": True}
        case "onnx":
            dividing = cell.word == "nan"
            told = {"model": "divisions" if dividing else "defects", "after": f"{HERE}:after"}
            shape = {"x": {"dtype": "float32", "shape": [None, 9]}}
            other = {"inputs": shape, "outputs": {"y": shape["x"]}} if cell.word == "other_shape" else {}
            return {**told, "before": f"{HERE}:{'divided' if dividing else 'before'}", **other}
    return {}


def _arguments(cell: Cell) -> dict[str, Any]:
    if cell.engine == "mcp_stdio" and ":" in cell.word:
        return {**_ARGUMENTS["process"], "word": cell.word.partition(":")[2]}
    return {name: cell.word if value == "" else value for name, value in _ARGUMENTS[cell.engine].items()}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def write_pack(folder: Path, cells: tuple[Cell, ...], places: Places) -> None:
    """A pack of a plan and an agent for every cell."""
    (folder / "manifests").mkdir(parents=True)
    rules = []
    for cell in cells:
        agent = manifest(cell, places)
        agents = [agent]
        if cell.fallback:
            kind = "population" if "population" in agent["output_schema"]["properties"] else "said"
            good = {
                "name": f"{cell.name}_good",
                "engine": "python",
                "settings": {"callable": f"{HERE}:good_{kind}"},
            }
            # Not a look-alike: only the setting `fallback` leads to it.
            agents.append({**agent, **good, "capability_tags": ["relief"]})
        for each in agents:
            (folder / "manifests" / f"{each['name']}.yaml").write_text(yaml.safe_dump(each))
        rules.append(_rule(cell, agent))
    about = {"name": "matrix", "version": "1.0.0", "description": "A pack for tests: an agent for every cell."}
    (folder / "pack.yaml").write_text(
        yaml.safe_dump({**about, "agents": ["manifests/*.yaml"], "rules": "rules.yaml"})
    )
    (folder / "rules.yaml").write_text(yaml.safe_dump({"rules": rules}))


def _rule(cell: Cell, agent: Mapping[str, Any]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"tool": cell.name, "arguments": _arguments(cell)}]
    if "said" in agent["output_schema"]["properties"]:
        steps.append({"tool": "relay_count", "arguments": {"text": {"step": 0, "field": "said"}}})
        counted: dict[str, Any] = {"step": 1, "field": "words"}
    else:
        counted = {"step": 0, "field": "population"}
    steps.append({"tool": "relay_tell", "arguments": {"words": counted}})
    asked = "request.original" if cell.engine != "device" else "request.payload.name"
    kind = "" if cell.engine != "device" else "document_reading"
    return {
        "name": cell.name,
        "confidence": 0.9,
        "priority": 90,
        "needs_words": False,
        "when": f'request.payload_kind == "{kind}" && {asked} == "try {cell.name}"',
        "steps": steps,
    }

"""Which engines run agents in this server: one entry for each engine that a manifest may name."""

from collections.abc import Mapping
from typing import Any

from agents.allowed_hosts import NONE_LISTED, AllowedHosts
from agents.engines.a2a import A2aEngine
from agents.engines.device import DeviceEngine, DeviceLink
from agents.engines.grpc import GrpcEngine
from agents.engines.mcp import McpEngine
from agents.engines.onnx import OnnxEngine
from agents.engines.openai import OpenaiEngine
from agents.engines.process import ProcessEngine
from agents.engines.python import PythonEngine
from agents.invocation import Engine
from conductor.schema_fit import misfits


def build_engines(
    python: PythonEngine,
    devices: DeviceLink,
    onnx: OnnxEngine,
    process: ProcessEngine,
    hosts: GrpcEngine,
    environment: Mapping[str, str],
    allowed: AllowedHosts = NONE_LISTED,
) -> Mapping[str, Engine]:
    """The engines by the name that a manifest gives.

    Args:
        python: runs functions of this process; it has the shared resources.
        devices: the way to connected devices.
        onnx: runs models; it has the shared resources and the artefact registry.
        process: runs agents in processes of their own.
        hosts: runs agents on agent hosts.
        environment: where variables that manifests name (tokens of foreign agents) are read from.
        allowed: where agents are reached.
    """
    return {
        "python": python,
        "device": DeviceEngine(devices),
        "onnx": onnx,
        "a2a": A2aEngine(environment, allowed),
        "mcp": McpEngine(environment, certain_misfits, process.machine, allowed),
        "openai": OpenaiEngine(environment, allowed),
        "process": process,
        "grpc": hosts,
    }


async def close_engines(engines: Mapping[str, Engine]) -> None:
    """Close connections to foreign agents and end the processes that were started for agents."""
    for engine in engines.values():
        if isinstance(engine, A2aEngine | GrpcEngine | McpEngine | OpenaiEngine | ProcessEngine):
            await engine.close()


async def forget_agent(engines: Mapping[str, Engine], name: str) -> None:
    """End what engines keep warm for an agent, as when it is disabled or replaced; calls under way still end.

    Args:
        engines: All of them.
        name: The agent, in all its versions.
    """
    for engine in engines.values():
        if isinstance(engine, A2aEngine | McpEngine | ProcessEngine):
            await engine.forget(name)


def certain_misfits(produced: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Where what one JSON Schema allows can never fit into what another asks for, each place in words.

    Args:
        produced: the schema of what is sent.
        asked: the schema of whoever receives it.
    """
    found = misfits(produced, produced, asked, asked)
    return [f"{misfit.place}: {misfit.message}" for misfit in found if misfit.certain]

"""Which engines run agents in this server: one entry for each engine that a manifest may name."""

from collections.abc import Mapping

from agents.engines.device import DeviceEngine, DeviceLink
from agents.engines.python import PythonEngine
from agents.invocation import Engine


def build_engines(python: PythonEngine, devices: DeviceLink) -> Mapping[str, Engine]:
    """The engines by the name that a manifest gives.

    Args:
        python: runs functions of this process; it has the shared resources.
        devices: the way to connected devices.
    """
    return {"python": python, "device": DeviceEngine(devices)}

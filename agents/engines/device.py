"""Run a step on the device that a request came from."""

import asyncio
from typing import Any, Protocol

from agents.invocation import Invocation
from podium.errors import AgentTimeout, DeviceOffline


class DeviceLink(Protocol):
    """The way to connected devices; the cloud implements it over the stream that each device holds open."""

    def online(self, device_id: str) -> bool:
        """Whether the device is connected now."""
        ...

    async def invoke(self, device_id: str, invocation: Invocation) -> Any:
        """Send the step and wait for its raw output.

        Raises:
            DeviceOffline: the device is not connected.
            DeviceLost: the connection ended before the answer.
            AgentTimeout: there was no answer within the time limit.
        """
        ...


class DeviceEngine:
    """Sends each call to `context.device_id`."""

    def __init__(self, link: DeviceLink) -> None:
        self._link = link

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`."""
        name, device_id = invocation.spec.name, invocation.context.device_id
        if not device_id:
            raise DeviceOffline(
                f"{name} runs on the device that a request came from, and this one came from none",
                next_step="Send the request from a device, or plan the step with another agent.",
                agent=name,
            )
        if not self._link.online(device_id):
            raise DeviceOffline(f"device {device_id} is not connected", agent=name)
        try:
            async with asyncio.timeout(invocation.time_limit.total_seconds()):
                return await self._link.invoke(device_id, invocation)
        except TimeoutError as error:
            raise AgentTimeout(
                f"device {device_id} did not answer {name} within {invocation.time_limit.total_seconds():g} s",
                agent=name,
            ) from error

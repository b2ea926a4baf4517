"""A server for devices as a process of its own: `python -m tests.contract.link.hub_process HOST:PORT DATA`.

What it did stands in DATA/effects, a line each; it knows what stands there when it is started again.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from cloud.devices import DeviceHub
from cloud.inbox import SqliteInbox
from cloud.serving import grpc_server
from conductor.bus import Acceptance
from podium.v1 import edge_pb2, edge_pb2_grpc
from tests.contract.link.users import HubService, number_of


class EffectFile:
    """Like the task desk it knows what it has accepted, also after a restart."""

    def __init__(self, path: Path) -> None:
        self._known = set(effects_in(path.parent))
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def accept(self, device_id: str, message: edge_pb2.Observation) -> Acceptance:
        number = number_of(message)
        if not (again := number in self._known):
            self._known.add(number)
            os.write(self._file, f"{number}\n".encode())
        return Acceptance(task_id=f"task-{number}", duplicate=again)


def effects_in(data: Path) -> list[int]:
    path = data / "effects"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


async def main(listen: str, data: Path) -> None:
    inbox = await SqliteInbox.open(data / "inbox.sqlite")
    hub = DeviceHub(
        accept=EffectFile(data / "effects").accept,
        clock=lambda: datetime.now(UTC),
        software_version="1",
        inbox=inbox,
    )
    server = grpc_server([])
    edge_pb2_grpc.add_EdgeServiceServicer_to_server(HubService(hub), server)
    port = server.add_insecure_port(listen)
    await server.start()
    print(f"{listen.rpartition(':')[0]}:{port}", flush=True)  # noqa: T201 - who started it waits for this
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

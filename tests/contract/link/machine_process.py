"""A device as a process of its own: `python -m tests.contract.link.machine_process HOST:PORT`.

Each line `NUMBER SIZE` on stdin is a message to send; on stdout `done NUMBER`, and `state TEXT` of the link.
"""

import asyncio
import sys
from typing import Any

from podium.link import Address
from podium.link.reconnecting import DEFAULT_BACKOFF
from tests.contract.link.users import DeviceMachine


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - who started it reads this


async def main(target: str) -> None:
    machine = DeviceMachine(
        lambda: Address(target=target, ca_pem=None),
        seed=1,
        on_state=lambda state: _say(f"state {state}"),
        backoff=DEFAULT_BACKOFF,
    )
    running: list[asyncio.Task[Any]] = [asyncio.create_task(machine.run())]

    async def send(number: int, size_bytes: int) -> None:
        await machine.send(number, size_bytes)
        _say(f"done {number}")

    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        number, size_bytes = map(int, line.split())
        running.append(asyncio.create_task(send(number, size_bytes)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

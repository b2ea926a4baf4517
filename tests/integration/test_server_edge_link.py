"""The device's own end of the link (`edge.link`) against the server, over a restart of the server."""

import asyncio
import json
import random
import uuid
from pathlib import Path

from edge.link import DeviceLink
from podium.client import AsyncClient
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import edge_pb2
from tests.integration.server import serving
from tests.integration.test_server_devices import READING


def test_a_step_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    asked: list[int] = []
    first_asked = asyncio.Event()
    may_answer = asyncio.Event()

    async def reread(request: edge_pb2.StepRequest) -> bytes:
        asked.append(request.attempt)
        first_asked.set()
        await may_answer.wait()
        return json.dumps({"words": 7, "confidence_score": 0.9, "sources": []}).encode()

    async def scenario() -> None:
        with serving(tmp_path / "data", grace_seconds=0.2) as server:
            address = Address.of(server.address)
            link = DeviceLink(
                lambda: address,
                device_id="pi",
                software_version="1",
                capabilities=["relay_reread"],
                handle_step=reread,
                jitter=random.Random(1),
            )
            running = asyncio.create_task(link.run())
            payload = json.dumps(READING).encode()
            task_id = await link.send(
                edge_pb2.Observation(
                    observation_id=str(uuid.uuid4()), kind="document_reading", payload_json=payload
                )
            )
            await first_asked.wait()
        with serving(tmp_path / "data", grace_seconds=0.2, listen=address.target):
            may_answer.set()
            async with AsyncClient(address) as client:
                task = await client.wait(task_id)
            assert task_status_name(task.status) == "succeeded"
            assert "7 words" in task.result.answer_markdown
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(limited())
    assert len(asked) >= 2

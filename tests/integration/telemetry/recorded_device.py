"""A device as a process: the real `edge.device.Device`, with a recorded reading in place of its models.

python -m tests.integration.telemetry.recorded_device SERVER DEVICE_ID FILE
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import edge.device
from edge.device import Device
from edge.identity import DeviceIdentity
from podium.link import Address
from podium.v1 import edge_pb2
from tools.document.reading import DocumentReading


def reading_of(name: str) -> dict[str, Any]:
    page = {"page": 1, "width": 10, "height": 10, "sharpness": 200.0, "lines": []}
    return {
        "name": name,
        "sha256": "0" * 64,
        "media_type": "image/png",
        "pages": [page],
        "findings": [],
        "crops": [],
    }


@dataclass(frozen=True)
class Recorded:
    reading: DocumentReading
    crops: tuple[()] = ()


class RecordedReader:
    def __init__(self, *, threads: int) -> None:
        self.threads = threads

    def open(self, data: bytes, name: str) -> Recorded:
        time.sleep(0.05)
        return Recorded(DocumentReading.from_json(reading_of(name)))


class RecordedDevice(Device):
    async def _handle_step(self, request: edge_pb2.StepRequest) -> bytes:
        await asyncio.sleep(0.05)
        if "fail" in sys.argv[4:]:
            raise ValueError(f"{json.loads(request.input_json)} cannot be read")
        return json.dumps({"words": 3, "confidence_score": 0.9, "sources": []}).encode()


async def main() -> None:
    server, name, file = sys.argv[1:4]
    edge.device.DocumentReader = RecordedReader  # type: ignore[assignment,misc]
    identity = DeviceIdentity(name=name, address=lambda: Address.of(server))
    async with RecordedDevice(identity, threads=1, attempts=5) as device:
        task_id = await device.send(await device.read(Path(file)))
        task = await device.wait(task_id)
        sys.stdout.write(json.dumps({"task_id": task_id, "trace_id": task.trace_id, "status": task.status}) + "\n")


if __name__ == "__main__":
    asyncio.run(main())

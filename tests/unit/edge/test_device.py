"""The whole device against a cloud that records every byte it is sent: the picture must not be among them."""

import asyncio
import io
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import grpc
import numpy as np
import pytest
from PIL import Image, ImageFilter

from edge.device import PAGE_REREAD, Device, default_device_id, observation_of
from edge.identity import DeviceIdentity
from podium.errors import InvalidRequest, PodiumError
from podium.link import Address
from podium.v1 import blob_pb2, blob_pb2_grpc, edge_pb2, edge_pb2_grpc, status_pb2, task_pb2, task_pb2_grpc
from tests.unit.tools.document.printed_page import page, png


def _identity(port):
    return DeviceIdentity(name="pi-1", address=lambda: Address.of(f"127.0.0.1:{port}"))


class RecordingCloud(
    edge_pb2_grpc.EdgeServiceServicer, blob_pb2_grpc.BlobServiceServicer, task_pb2_grpc.TaskServiceServicer
):
    """Accepts everything, keeps every message, and hands out the steps put into `steps`."""

    def __init__(self):
        self.messages = []
        self.blobs = {}
        self.steps = asyncio.Queue()
        self.results = asyncio.Queue()
        self.stat_failures = 0
        self.refusals = 0

    async def Connect(self, request_iterator, context):  # noqa: N802 - gRPC's name
        outgoing = asyncio.Queue()
        reading = asyncio.create_task(self._listen(request_iterator, outgoing))
        asking = asyncio.create_task(self._ask(outgoing))
        try:
            while True:
                yield await outgoing.get()
        finally:
            reading.cancel()
            asking.cancel()

    async def _listen(self, requests, outgoing):
        async for request in requests:
            self.messages.append(request)
            response = edge_pb2.ConnectResponse(ack_through=request.sequence)
            match request.WhichOneof("message"):
                case "hello":
                    response.welcome.software_version = "test"
                case "observation":
                    response.observation_outcome.observation_id = request.observation.observation_id
                    if self.refusals:
                        self.refusals -= 1
                        self.blobs.clear()
                        response.observation_outcome.error.code = "INVALID_REQUEST"
                        response.observation_outcome.error.message = "a blob is not stored"
                    else:
                        response.observation_outcome.task_id = "task-1"
                case "step_result":
                    await self.results.put(request.step_result)
            await outgoing.put(response)

    async def _ask(self, outgoing):
        while True:
            await outgoing.put(edge_pb2.ConnectResponse(step_request=await self.steps.get()))

    async def Stat(self, request, context):  # noqa: N802 - gRPC's name
        if self.stat_failures:
            self.stat_failures -= 1
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "a slow network")
        self.messages.append(request)
        return blob_pb2.StatResponse()

    async def Upload(self, request_iterator, context):  # noqa: N802 - gRPC's name
        blob, data = None, b""
        async for request in request_iterator:
            self.messages.append(request)
            blob = blob or request.blob
            data += request.data
        self.blobs[blob.sha256] = data
        return blob_pb2.UploadResponse(blob=blob)

    async def WatchTask(self, request, context):  # noqa: N802 - gRPC's name
        yield task_pb2.WatchTaskResponse(status=status_pb2.TASK_STATUS_SUCCEEDED)

    async def GetTask(self, request, context):  # noqa: N802 - gRPC's name
        task = task_pb2.Task(task_id=request.task_id, status=status_pb2.TASK_STATUS_SUCCEEDED)
        return task_pb2.GetTaskResponse(task=task)


@asynccontextmanager
async def connected(folder=None):
    cloud = RecordingCloud()
    server = grpc.aio.server()
    for add in (
        edge_pb2_grpc.add_EdgeServiceServicer_to_server,
        blob_pb2_grpc.add_BlobServiceServicer_to_server,
        task_pb2_grpc.add_TaskServiceServicer_to_server,
    ):
        add(cloud, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with (
            asyncio.timeout(60),
            Device(_identity(port), threads=1, folder=folder) as device,
        ):
            yield cloud, device
    finally:
        await server.stop(0)


def _blurred(path):
    picture = page().filter(ImageFilter.GaussianBlur(2.6))
    path.write_bytes(png(picture))
    return picture


def test_text_boxes_and_crops_go_up_and_the_picture_does_not(tmp_path):
    picture = _blurred(tmp_path / "invoice.png")

    async def scenario():
        async with connected() as (cloud, device):
            seen = await device.read(tmp_path / "invoice.png")
            assert await device.send(seen) == "task-1"
            assert (await device.wait("task-1")).task_id == "task-1"
        return cloud, seen

    cloud, seen = asyncio.run(scenario())
    (observation,) = [
        message.observation
        for message in cloud.messages
        if message.DESCRIPTOR.name == "ConnectRequest" and message.HasField("observation")
    ]
    assert json.loads(observation.payload_json) == seen.scan.reading.to_json()
    assert {blob.sha256 for blob in observation.blobs} == set(cloud.blobs) != set()

    # Everything that was sent, byte for byte: no part of the file, and crops only of single lines.
    sent = b"".join(message.SerializeToString() for message in cloud.messages)
    file = (tmp_path / "invoice.png").read_bytes()
    assert not any(file[start : start + 64] in sent for start in range(64, len(file) - 64, 64))
    shown = np.zeros((picture.height, picture.width), dtype=bool)
    for crop in seen.scan.reading.crops:
        image = Image.open(io.BytesIO(cloud.blobs[crop.sha256]))
        x, y, width, height = crop.box
        assert image.width <= width + 1
        assert width * height < picture.width * picture.height / 4
        shown[y : y + height, x : x + width] = True
    assert shown.mean() < 0.5
    allowed = {"hello", "observation", "step_result"}
    kinds = {
        message.WhichOneof("message") for message in cloud.messages if isinstance(message, edge_pb2.ConnectRequest)
    }
    assert kinds <= allowed


def test_the_cloud_can_have_a_place_read_again_but_gets_only_text(tmp_path):
    path = tmp_path / "invoice.png"
    path.write_bytes(png(page()))

    async def scenario():
        async with connected(tmp_path) as (cloud, device):
            seen = await device.read(path)
            line = seen.scan.reading.pages[0].lines[0]
            places = {"places": [{"field": "number", "page": 1, "box": list(line.box), "reason": "unsure"}]}

            async def ask(agent, document, attempt):
                await cloud.steps.put(
                    edge_pb2.StepRequest(
                        task_id="t",
                        attempt=attempt,
                        agent=agent,
                        input_json=json.dumps(places).encode(),
                        document_sha256=document,
                    )
                )
                return await cloud.results.get()

            sha256 = seen.scan.reading.sha256
            return (
                line,
                await ask(PAGE_REREAD, sha256, 1),
                await ask(PAGE_REREAD, "0" * 64, 2),
                await ask("x", sha256, 3),
            )

    line, again, gone, unknown = asyncio.run(scenario())
    output = json.loads(again.output_json)
    assert [item["text"] for item in output["readings"][0]["lines"]] == [line.text]
    assert set(output) == {"readings", "sources", "confidence_score"}
    assert (gone.error.code, unknown.error.code) == ("NOT_FOUND", "NOT_FOUND")
    assert "no agent" in unknown.error.message


def test_crops_that_the_cloud_let_go_of_meanwhile_are_sent_again(tmp_path):
    _blurred(tmp_path / "invoice.png")

    async def scenario():
        async with connected() as (cloud, device):
            seen = await device.read(tmp_path / "invoice.png")
            cloud.refusals = 1
            assert await device.send(seen) == "task-1"
            assert set(cloud.blobs) == {crop.sha256 for crop, _ in seen.scan.crops} != set()
            cloud.refusals = 2  # and what is refused for good is refused
            with pytest.raises(InvalidRequest, match="not stored"):
                await device.send(seen)
            assert cloud.refusals == 0

    asyncio.run(scenario())


def test_an_upload_that_ran_out_of_time_is_begun_anew(tmp_path):
    _blurred(tmp_path / "invoice.png")

    async def scenario():
        async with connected() as (cloud, device):
            cloud.stat_failures = 1
            return await device.send(await device.read(tmp_path / "invoice.png"))

    assert asyncio.run(scenario()) == "task-1"


def test_a_link_that_ends_for_good_ends_what_waits_for_it(tmp_path):
    path = tmp_path / "invoice.png"
    path.write_bytes(png(page()))

    async def scenario():
        server = grpc.aio.server()  # It serves nothing: UNIMPLEMENTED.
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with Device(_identity(port), threads=1) as device:
            seen = await device.read(path)
            for _ in range(2):
                with pytest.raises(PodiumError):
                    async with asyncio.timeout(20):
                        await device.send(seen)
            with pytest.raises(PodiumError):
                device.require_link()
        await server.stop(0)

    asyncio.run(scenario())


def test_a_one_off_run_does_not_take_the_running_device_s_name():
    assert default_device_id(once=False) == default_device_id(once=False)
    assert default_device_id(once=True) != default_device_id(once=True)


def test_an_observation_says_when_it_was_made(tmp_path):
    _blurred(tmp_path / "invoice.png")
    moment = datetime(2026, 1, 5, 8, tzinfo=UTC)

    async def scenario():
        async with connected() as (_, device):
            return await device.read(tmp_path / "invoice.png", observation_id="o-1")

    observation = observation_of(asyncio.run(scenario()), [], observed_at=moment)
    assert observation.observation_id == "o-1"
    assert observation.observe_time.ToDatetime(UTC) == moment

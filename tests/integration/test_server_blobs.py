"""`BlobService` over the wire."""

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from podium.client import Client
from podium.link import Address
from podium.v1 import blob_pb2, blob_pb2_grpc, task_pb2, task_pb2_grpc
from tests.integration.server import Running

CHUNK = 256 * 1024


def _ref(data: bytes) -> blob_pb2.BlobRef:
    return blob_pb2.BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), media_type="image/png")


def _chunks(data: bytes, *, start: int = 0, end: int | None = None) -> Iterator[blob_pb2.UploadRequest]:
    blob: blob_pb2.BlobRef | None = _ref(data)
    for offset in range(start, end or len(data), CHUNK):
        yield blob_pb2.UploadRequest(blob=blob, offset_bytes=offset, data=data[offset : offset + CHUNK])
        blob = None


def _code(caught: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    return str(caught.value.code().name)


def test_bytes_go_up_and_come_down_also_in_two_tries(channel: grpc.Channel) -> None:
    stub = blob_pb2_grpc.BlobServiceStub(channel)
    data = random.Random(5).randbytes(5 * CHUNK + 99)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Upload(_chunks(data, end=2 * CHUNK))
    assert _code(caught) == "INVALID_ARGUMENT"
    state = stub.Stat(blob_pb2.StatRequest(sha256=_ref(data).sha256))
    assert (state.committed_bytes, state.complete) == (2 * CHUNK, False)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Upload(_chunks(data, start=3 * CHUNK))
    assert _code(caught) == "FAILED_PRECONDITION"
    assert stub.Upload(_chunks(data, start=2 * CHUNK)).blob == _ref(data)
    assert stub.Stat(blob_pb2.StatRequest(sha256=_ref(data).sha256)).complete
    assert stub.Upload(_chunks(data)).blob == _ref(data)
    pieces = list(stub.Download(blob_pb2.DownloadRequest(sha256=_ref(data).sha256, offset_bytes=CHUNK - 1)))
    assert b"".join(piece.data for piece in pieces) == data[CHUNK - 1 :]
    assert pieces[1].offset_bytes == 2 * CHUNK - 1


@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ([], "INVALID_ARGUMENT"),
        ([blob_pb2.UploadRequest(data=b"x")], "INVALID_ARGUMENT"),
        ([blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64))], "INVALID_ARGUMENT"),
        ([blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="..", size_bytes=1))], "INVALID_ARGUMENT"),
        ([blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=2**63))], "RESOURCE_EXHAUSTED"),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1), offset_bytes=2**63)],
            "FAILED_PRECONDITION",
        ),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1), data=b"x")],
            "DATA_LOSS",
        ),
        (
            [
                blob_pb2.UploadRequest(
                    blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=2**20), data=bytes(CHUNK + 1)
                )
            ],
            "INVALID_ARGUMENT",
        ),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1, file_name="a\0b"))],
            "INVALID_ARGUMENT",
        ),
    ],
)
def test_bad_uploads_are_refused(channel: grpc.Channel, requests: list[blob_pb2.UploadRequest], code: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        blob_pb2_grpc.BlobServiceStub(channel).Upload(iter(requests))
    assert _code(caught) == code


def test_bad_downloads_are_refused(channel: grpc.Channel) -> None:
    stub = blob_pb2_grpc.BlobServiceStub(channel)
    stub.Upload(_chunks(b"hello"))
    for sha256, offset, code in (
        ("0" * 64, 0, "NOT_FOUND"),
        ("../" * 20, 0, "INVALID_ARGUMENT"),
        (_ref(b"hello").sha256, 6, "INVALID_ARGUMENT"),
        (_ref(b"hello").sha256, 2**63, "INVALID_ARGUMENT"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.Download(blob_pb2.DownloadRequest(sha256=sha256, offset_bytes=offset)))
        assert _code(caught) == code


def test_a_task_may_name_what_was_uploaded_with_its_true_size(server: Running, tmp_path: Path) -> None:
    file = tmp_path / "page.png"
    file.write_bytes(b"not really a picture")
    with Client(Address.of(server.address)) as client:
        blob = client.upload(file)
        assert client.submit("relay the words please", attachments=[blob]).task_id
        assert b"".join(client.download(blob.sha256)) == file.read_bytes()
    with server.channel() as channel:
        request = task_pb2.SubmitTaskRequest(
            request_id="00000000-0000-4000-8000-000000000001",
            text="relay",
            attachments=[blob_pb2.BlobRef(sha256=blob.sha256, size_bytes=1)],
        )
        with pytest.raises(grpc.RpcError) as caught:
            task_pb2_grpc.TaskServiceStub(channel).SubmitTask(request)
        assert _code(caught) == "INVALID_ARGUMENT"

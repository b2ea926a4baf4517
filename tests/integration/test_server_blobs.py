"""`BlobService` over the wire."""

import hashlib
import random
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from podium.client import Client
from podium.client.transfers import BlobDamaged
from podium.errors import DataCorrupt, InvalidRequest, LimitExceeded, NotFound, PermissionDenied
from podium.link import Address
from podium.rpc_status import from_rpc_error
from podium.v1 import blob_pb2, blob_pb2_grpc, task_pb2, task_pb2_grpc
from tests.integration.server import Running, serving

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
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=2**64 - 1))],
            "RESOURCE_EXHAUSTED",
        ),
        ([blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="A" * 64, size_bytes=1))], "INVALID_ARGUMENT"),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="a" * 63 + "\0", size_bytes=1))],
            "INVALID_ARGUMENT",
        ),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1), data=b"xy")],
            "INVALID_ARGUMENT",
        ),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1, media_type="../x"))],
            "INVALID_ARGUMENT",
        ),
        (
            [blob_pb2.UploadRequest(blob=blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1, file_name="../a"))],
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


def test_one_flipped_byte_is_refused_at_once_and_what_came_before_it_stays(channel: grpc.Channel) -> None:
    stub = blob_pb2_grpc.BlobServiceStub(channel)
    data = random.Random(6).randbytes(4 * CHUNK)
    chunks = list(_chunks(data))
    for chunk in chunks:
        chunk.crc32 = zlib.crc32(chunk.data)
    spoilt = bytearray(chunks[2].data)
    spoilt[1000] ^= 1
    chunks[2].data = bytes(spoilt)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Upload(iter(chunks))
    error = from_rpc_error(caught.value)
    assert (error.code, error.field, error.retryable) == ("CHUNK_DAMAGED", "crc32", True)
    assert stub.Stat(blob_pb2.StatRequest(sha256=_ref(data).sha256)).committed_bytes == 2 * CHUNK
    assert stub.Upload(_chunks(data, start=2 * CHUNK)).blob == _ref(data)


def test_an_upload_of_which_hardly_anything_comes_ends(tmp_path: Path) -> None:
    def drips() -> Iterator[blob_pb2.UploadRequest]:
        blob: blob_pb2.BlobRef | None = blob_pb2.BlobRef(sha256="0" * 64, size_bytes=10_000)
        for offset in range(10_000):
            yield blob_pb2.UploadRequest(blob=blob, offset_bytes=offset, data=b"x")
            blob = None
            if ended.wait(0.05):
                return

    ended = threading.Event()
    with serving(tmp_path / "data", upload_idle_seconds=1) as server, server.channel() as channel:
        stub = blob_pb2_grpc.BlobServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Upload(drips())
        ended.set()
        assert from_rpc_error(caught.value).code == "UPLOAD_TOO_SLOW"
        assert 0 < stub.Stat(blob_pb2.StatRequest(sha256="0" * 64)).committed_bytes < 1000


def test_what_is_whose_over_the_wire(tmp_path: Path) -> None:
    def token(name: str, role: str = "caller") -> Address:
        with Client(server.tls_address()) as operator:
            return server.tls_address(operator.issue_token(name, [role]).token)

    quotas = {"caller_daily_blob_bytes": 1000, "blob_grace_hours": 0}
    with serving(tmp_path / "data", insecure_loopback=False, **quotas) as server:  # noqa: SIM117 - it makes the tokens
        with Client(token("ann")) as ann, Client(token("bob")) as bob, Client(token("rita", "reviewer")) as rita:
            blob = ann.upload_bytes(b"hers" * 100, media_type="text/plain")
            with pytest.raises(NotFound):
                b"".join(bob.download(blob.sha256))
            with pytest.raises(InvalidRequest, match="not stored"):
                bob.submit("relay the words please", attachments=[blob])
            assert b"".join(rita.download(blob.sha256)) == b"hers" * 100
            with pytest.raises(PermissionDenied):
                ann.collect_garbage()
            with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):
                ann.upload_bytes(b"x" * 601, media_type="text/plain")
            spare = bob.upload_bytes(b"spare", media_type="text/plain")
            ann.submit("relay the words please", attachments=[blob])
            with Client(server.tls_address()) as operator:
                assert operator.collect_garbage(dry_run=True).removed_count == 1
                collected = operator.collect_garbage()
                assert (collected.removed_count, collected.kept_bytes) == (1, 400)
            with pytest.raises(NotFound):
                b"".join(bob.download(spare.sha256))
            assert b"".join(ann.download(blob.sha256)) == b"hers" * 100


def test_a_download_lies_there_only_when_it_is_whole(server: Running, tmp_path: Path) -> None:
    data = random.Random(7).randbytes(3 * CHUNK)
    seen: list[tuple[int, int]] = []
    with Client(Address.of(server.address)) as client:
        blob = client.upload_bytes(
            data, media_type="text/plain", progress=lambda sent, of: seen.append((sent, of))
        )
        assert seen[-1] == (len(data), len(data))
        target = tmp_path / "it.bin"
        part = tmp_path / f"it.bin.{blob.sha256[:16]}.part"
        with pytest.raises(BlobDamaged, match="more bytes came"):
            client.download_to(blob.sha256, target, size_bytes=CHUNK)
        assert not target.exists()
        for left in (data[:CHUNK], b"not its beginning", data + b"too much", b""):
            part.write_bytes(left)
            assert client.download_to(blob.sha256, target, size_bytes=len(data)) == len(data)
            assert target.read_bytes() == data
            assert not part.exists()
        part.symlink_to(target)
        with pytest.raises(InvalidRequest, match="cannot be written"):
            client.download_to(blob.sha256, target)
        stored = server.data / "blobs" / blob.sha256[:2] / blob.sha256
        stored.write_bytes(data[:-1] + b"?")
        with pytest.raises(DataCorrupt):
            b"".join(client.download(blob.sha256))


def test_several_clients_that_send_one_blob_at_once_all_come_to_an_end(server: Running) -> None:
    data = random.Random(8).randbytes(60 * CHUNK)
    with Client(Address.of(server.address)) as client, ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(client.upload_bytes, data, media_type="text/plain") for _ in range(4)]
        assert {done.result(60).sha256 for done in sending} == {_ref(data).sha256}
        assert b"".join(client.download(_ref(data).sha256)) == data

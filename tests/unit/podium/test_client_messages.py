"""What the clients send, and that both clients offer the same."""

import inspect
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from podium.client import AsyncClient, Client
from podium.client.blobs import AsyncBlobCalls, BlobCalls
from podium.client.messages import Countdown, blob_of, submit_request
from podium.client.registry import AsyncRegistryCalls, RegistryCalls
from podium.client.transfers import CHUNK_BYTES, Sending, file_reader
from podium.errors import InvalidRequest


def test_the_clients_are_twins():
    def offered(kind):
        return {
            name: tuple(inspect.signature(member).parameters)
            for name, member in vars(kind).items()
            if not name.startswith("_") and callable(member)
        }

    assert offered(Client) == offered(AsyncClient)
    assert offered(RegistryCalls) == offered(AsyncRegistryCalls)
    assert offered(BlobCalls) == offered(AsyncBlobCalls)
    assert issubclass(Client, RegistryCalls)
    assert issubclass(Client, BlobCalls)
    assert issubclass(AsyncClient, AsyncRegistryCalls)
    assert issubclass(AsyncClient, AsyncBlobCalls)
    assert all(member.__doc__ for name, member in vars(Client).items() if not name.startswith("_"))


def test_a_submission_gets_a_uuid_and_keeps_its_moment():
    moment = datetime(2026, 1, 5, 8, tzinfo=UTC)
    request = submit_request("上季度\x00😀", as_of=moment, time_limit=timedelta(seconds=5), labels={"a": "b"})
    assert len(request.request_id) == 36
    assert request.text == "上季度\x00😀"
    assert request.as_of.ToDatetime(UTC) == moment
    assert request.time_limit.ToTimedelta() == timedelta(seconds=5)
    assert dict(request.labels) == {"a": "b"}


def test_what_cannot_be_sent_is_refused_before_it_is_sent():
    with pytest.raises(InvalidRequest, match="surrogate"):
        submit_request("a\ud800b")
    with pytest.raises(InvalidRequest, match="time zone"):
        submit_request("a", as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test


def test_chunks_cover_the_file_from_any_offset(tmp_path):
    data = bytes(range(256)) * 3000
    path = tmp_path / "scan.PNG"
    path.write_bytes(data)
    blob = blob_of(path)
    assert (blob.size_bytes, blob.media_type, blob.file_name) == (len(data), "image/png", "scan.PNG")
    for start in (0, 1, CHUNK_BYTES, len(data) - 1):
        with path.open("rb", buffering=0) as content:
            chunks = list(Sending(file_reader(content), blob, start, None).requests())
        assert b"".join(chunk.data for chunk in chunks) == data[start:]
        assert chunks[0].blob == blob
        assert not any(chunk.HasField("blob") for chunk in chunks[1:])
        assert all(chunk.crc32 == zlib.crc32(chunk.data) for chunk in chunks)
        assert [chunk.offset_bytes for chunk in chunks] == list(range(start, len(data), CHUNK_BYTES))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match=r"none\.png"):
        blob_of(tmp_path / "none.png")


def test_a_time_limit_runs_on_over_several_calls():
    now_s = [100.0]
    clock = Countdown(timedelta(seconds=5), clock_s=lambda: now_s[0])
    assert clock.left_s() == 5
    now_s[0] = 103
    assert clock.left_s() == 2
    now_s[0] = 200
    assert clock.left_s() == 0
    assert Countdown(None).left_s() is None

"""`podium blobs`: on a running server and on its data directory."""

from pathlib import Path

from podium.client import Client
from podium.link import Address
from tests.integration.command_line import podium
from tests.integration.server import serving


def test_what_is_stored_is_listed_and_what_nothing_refers_to_goes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, blob_grace_hours=0) as server:
        with Client(Address.of(server.address)) as client:
            used = client.upload_bytes(b"used", media_type="text/plain")
            spare = client.upload_bytes(b"spare", media_type="text/plain")
            client.submit("relay the words please", attachments=[used])
        on_it = ("--server", server.address, "--json")
        listed = podium("blobs", "list", "--data", str(data), "--json").json["blobs"]
        assert {blob["sha256"]: blob["references"] for blob in listed} == {used.sha256: 1, spare.sha256: 0}
        assert listed[0]["owners"] == ["local"]
        assert listed[0]["media_type"] == "text/plain"
        unreferenced = podium("blobs", "list", "--data", str(data), "--unreferenced", "--json").json["blobs"]
        assert [blob["size_bytes"] for blob in unreferenced] == [5]
        assert podium("blobs", "list", "--data", str(data), "--caller", "ann", "--json").json == {"blobs": []}
        assert podium("blobs", "gc", "--dry-run", *on_it).json["removed"] == {"count": 1, "bytes": 5}
        assert podium("blobs", "gc", *on_it).json == {
            "dry_run": False,
            "removed": {"count": 1, "bytes": 5},
            "kept": {"count": 1, "bytes": 4},
        }
        usage = podium("blobs", "usage", "--data", str(data), "--json").json
        assert (usage["blobs"], usage["referenced_bytes"], usage["unfinished_uploads"]) == (1, 4, 0)
        assert usage["callers"] == [{"caller": "local", "blobs": 1, "total_bytes": 4}]
        assert "1 blobs, 4 bytes" in podium("blobs", "usage", "--data", str(data)).out
        assert used.sha256 in podium("blobs", "list", "--data", str(data)).out


def test_a_folder_without_blobs_is_told(tmp_path: Path) -> None:
    told = podium("blobs", "usage", "--data", str(tmp_path), "--json")
    assert told.error["code"] == "NOT_FOUND"

"""A capability token permits one thing, for a while."""

import base64
import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from agents.capability import CapabilityAuthority, Grant
from podium.errors import CapabilityDenied, CapabilityExpired, DataCorrupt
from tests.unit.agents.specs import NOW

GRANT = Grant.for_query(
    "SELECT 1",
    {"start": {"date": "2026-07-01"}},
    task_id="t",
    audience="executor",
    scope="sql:read",
    subject="ann",
)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self):
        return self.now


def authority(clock: Clock | None = None, key: bytes = b"k" * 32) -> CapabilityAuthority:
    return CapabilityAuthority(key, clock=clock or Clock())


def test_a_token_is_good_for_its_grant_until_it_expires() -> None:
    clock = Clock()
    signer = authority(clock)
    token, expires = signer.issue(GRANT)
    assert expires == NOW + timedelta(minutes=15)
    clock.now = NOW + timedelta(minutes=14, seconds=59)
    signer.demand(token, GRANT)
    clock.now = NOW + timedelta(minutes=15)
    with pytest.raises(CapabilityExpired):
        signer.demand(token, GRANT)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Grant)])
def test_a_token_is_good_for_nothing_else(name: str) -> None:
    signer = authority()
    token, _ = signer.issue(GRANT)
    with pytest.raises(CapabilityDenied, match="is for another"):
        signer.demand(token, dataclasses.replace(GRANT, **{name: "other"}))


def _unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


def test_forged_tokens_are_refused_and_not_repeated() -> None:
    signer = authority()
    token, _ = signer.issue(GRANT)
    foreign, _ = authority(key=b"x" * 32).issue(GRANT)
    head, body, signature = token.split(".")
    for forged in (
        "",
        "a.b.c",
        token + "A",
        f"{head}.{body[:-4]}AAAA.{signature}",
        foreign,
        _unsigned(token),
        "é.é.é",
    ):
        with pytest.raises(CapabilityDenied) as denied:
            signer.demand(forged, GRANT)
        assert "genuine" in denied.value.message
        assert signature not in denied.value.message


def test_the_key_survives_a_restart_and_two_starts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "capability.key"

    def start(_: int) -> CapabilityAuthority:
        return CapabilityAuthority.open(path, clock=Clock())

    with ThreadPoolExecutor(8) as pool:
        signers = list(pool.map(start, range(8)))
    token, _ = signers[0].issue(GRANT)
    for signer in signers:
        signer.demand(token, GRANT)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["capability.key"]


def test_a_broken_key_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "capability.key"
    path.write_bytes(b"short")
    with pytest.raises(DataCorrupt, match="holds 5 bytes"):
        CapabilityAuthority.open(path, clock=Clock())

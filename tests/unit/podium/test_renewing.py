"""When a certificate is renewed, whatever the clocks say and whoever answers."""

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.errors import PodiumError, ServerUnavailable
from podium.link.certificates import CertificateRevoked, RenewalFailed
from podium.link.machine import IdentityUnusable
from podium.link.renewing import RenewalWatch, Validity, clock_warning, renew_in_process
from tests.fakes.clock import FakeClock

ISSUED = datetime(2026, 11, 29, 12, tzinfo=UTC)


def write(folder: Path, serial: str, received: datetime, *, days: int = 90) -> None:
    about = {
        "serial": serial,
        "issued": ISSUED.isoformat(),
        "expires": (ISSUED + timedelta(days=days)).isoformat(),
        "received": received.isoformat(),
    }
    (folder / "identity.json").write_text(json.dumps(about))


class Ground:
    """A watch whose waits move the clock, and a renewal that does what it is told."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder, self.clock = folder, clock
        self.answers: list[PodiumError | None] = []
        self.renewed_at: list[datetime] = []
        self.news: list[str] = []
        self.waits = 0
        self.before_wait: Callable[[], None] = lambda: None
        self.watch = RenewalWatch(
            folder,
            clock=clock,
            jitter=lambda: 0.0,
            on_renewed=lambda: self.news.append("renewed"),
            on_problem=lambda error: self.news.append(error.code),
            renew=self.renew,
            wait=self.wait,
        )

    async def renew(self, folder: Path) -> None:
        self.renewed_at.append(self.clock())
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        write(folder, f"serial {len(self.renewed_at)}", self.clock())

    async def wait(self, seconds: float) -> None:
        self.waits += 1
        await asyncio.sleep(0)
        self.before_wait()
        self.clock.advance(seconds=seconds)

    async def until(self, reached: Callable[[], bool]) -> None:
        running = asyncio.ensure_future(self.watch.run())
        try:
            async with asyncio.timeout(30):
                while not reached():
                    assert not running.done()
                    await asyncio.sleep(0)
        finally:
            running.cancel()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    clock = FakeClock(ISSUED)
    write(tmp_path, "serial 0", ISSUED, days=3)
    return Ground(tmp_path, clock)


def test_it_is_renewed_at_two_thirds_of_its_life(ground: Ground) -> None:
    asyncio.run(ground.until(lambda: ground.news == ["renewed"]))
    assert ground.renewed_at == [ISSUED + timedelta(days=2)]


@pytest.mark.parametrize(
    "off", [timedelta(days=365), timedelta(days=-365), ISSUED - datetime(1970, 1, 1, tzinfo=UTC)]
)
def test_a_clock_that_is_off_but_runs_makes_no_difference(tmp_path: Path, off: timedelta) -> None:
    received = ISSUED - abs(off) if off.days > 10_000 else ISSUED + off
    write(tmp_path, "serial 0", received)
    validity = Validity.read(tmp_path)
    assert validity.renewal_due_in(received, 0.0) == timedelta(days=60)
    assert validity.renewal_due_in(received, 1.0) == timedelta(days=64.5)
    assert validity.renewal_due_in(received + timedelta(days=60), 0.0) == timedelta(0)


@pytest.mark.parametrize("jump", [timedelta(days=365), timedelta(days=-365)])
def test_a_clock_that_jumps_makes_for_one_renewal_and_no_loop(ground: Ground, jump: timedelta) -> None:
    asyncio.run(ground.until(lambda: ground.waits == 5))
    assert ground.renewed_at == []
    ground.clock.now += jump
    write(ground.folder, "serial 0", ISSUED)
    waited = ground.waits
    asyncio.run(ground.until(lambda: ground.waits >= waited + 50))
    assert len(ground.renewed_at) == 1


def test_one_that_expired_offline_is_renewed_at_once(ground: Ground) -> None:
    ground.clock.advance(days=100)
    asyncio.run(ground.until(lambda: len(ground.news) == 1))
    assert ground.waits <= 1


def test_it_tries_again_with_growing_pauses_until_the_server_is_back(ground: Ground) -> None:
    ground.clock.advance(days=100)
    ground.answers = [ServerUnavailable("away") for _ in range(20)]
    asyncio.run(ground.until(lambda: "renewed" in ground.news))
    assert ground.news == ["SERVER_UNAVAILABLE"] * 20 + ["renewed"]
    pauses = [after - before for before, after in zip(ground.renewed_at, ground.renewed_at[1:], strict=False)]
    assert pauses[0] <= timedelta(seconds=5)
    assert max(pauses) <= timedelta(minutes=5)
    assert pauses == sorted(pauses)


def test_after_a_final_refusal_it_waits_for_a_person(ground: Ground) -> None:
    ground.clock.advance(days=100)
    ground.answers = [CertificateRevoked("revoked")]

    def enrol_after_a_while() -> None:
        if ground.waits == 30:
            write(ground.folder, "by hand", ground.clock())

    ground.before_wait = enrol_after_a_while
    asyncio.run(ground.until(lambda: "renewed" in ground.news))
    assert ground.news == ["CERTIFICATE_REVOKED", "renewed"]
    assert len(ground.renewed_at) == 1


def test_a_refusal_of_the_certificate_is_asked_about_at_once_but_not_without_end(ground: Ground) -> None:
    async def refused_for_ever() -> None:
        running = asyncio.ensure_future(ground.watch.run())
        while ground.clock() < ISSUED + timedelta(minutes=10):
            ground.watch.hurry()
            await asyncio.sleep(0)
        running.cancel()

    asyncio.run(refused_for_ever())
    assert ground.renewed_at[0] <= ISSUED + timedelta(minutes=1)
    assert 3 <= len(ground.renewed_at) <= 11


def test_files_that_somebody_else_renewed_are_taken_up(ground: Ground) -> None:
    def by_hand() -> None:
        if ground.waits == 3:
            write(ground.folder, "by hand", ground.clock())

    ground.before_wait = by_hand
    asyncio.run(ground.until(lambda: ground.news == ["renewed"]))
    assert ground.renewed_at == []


def test_damaged_files_are_told_and_looked_at_again(ground: Ground) -> None:
    (ground.folder / "identity.json").write_text("{}")

    def mend() -> None:
        if ground.waits == 3:
            write(ground.folder, "mended", ground.clock(), days=3)

    ground.before_wait = mend
    asyncio.run(ground.until(lambda: "renewed" in ground.news))
    assert ground.news[:3] == ["IDENTITY_UNUSABLE"] * 3
    with pytest.raises(IdentityUnusable):
        Validity.read(ground.folder / "nowhere")


def test_a_time_without_its_zone_is_damage(tmp_path: Path) -> None:
    write(tmp_path, "serial 0", ISSUED.replace(tzinfo=None))
    with pytest.raises(IdentityUnusable, match="damaged"):
        Validity.read(tmp_path)


def test_a_clock_that_is_off_is_put_into_words() -> None:
    assert clock_warning(ISSUED, ISSUED + timedelta(minutes=4)) == ""
    ahead = clock_warning(ISSUED + timedelta(days=365), ISSUED)
    assert "365 days ahead of the server's" in ahead
    assert "2027-11-29" in ahead
    assert "10 min behind" in clock_warning(ISSUED, ISSUED + timedelta(minutes=10))


def test_the_process_that_renews_tells_why_it_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IdentityUnusable):
        asyncio.run(renew_in_process(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RenewalFailed, match="status 1"):
        asyncio.run(renew_in_process(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(RenewalFailed, match="cannot be started"):
        asyncio.run(renew_in_process(tmp_path))

"""Renewal, expiry offline, revocation, theft and wrong clocks, with real servers and real TLS."""

import asyncio
import shutil
import ssl
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from cloud import tls
from podium.errors import PodiumError
from podium.identity.enrolling import renew
from podium.link import Address, MachineIdentity
from podium.link.certificates import (
    CertificateRefused,
    CertificateRevoked,
    CertificateSuperseded,
    RenewalTooLate,
)
from podium.link.renewing import RenewalWatch, Validity, clock_warning, renew_in_process
from tests.integration.identity.ground import DEVICE, Stream, enrolled, now, operator, shifted, tls_serving
from tests.integration.server import Running


def contested(server: Running) -> bool:
    with operator(server) as client:
        (machine,) = client.machines(DEVICE)
    return machine.HasField("contested_time")


def watched(folder: Path, clock: Callable[[], datetime] = now, *, hurry: bool = False) -> tuple[list[str], float]:
    """What a renewal watch reports first, and after how many seconds."""

    async def run() -> list[str]:
        news: list[str] = []
        changed = asyncio.Event()

        def renewed() -> None:
            news.append("renewed")
            changed.set()

        def problem(error: PodiumError) -> None:
            news.append(error.code)
            changed.set()

        async def renew_at_that_clock(place: Path) -> None:
            await asyncio.to_thread(renew, place, clock=clock)

        watch = RenewalWatch(
            folder,
            clock=clock,
            jitter=lambda: 0.0,
            on_renewed=renewed,
            on_problem=problem,
            renew=renew_in_process if clock is now else renew_at_that_clock,
        )
        running = asyncio.create_task(watch.run())
        if hurry:
            watch.hurry()
        try:
            await asyncio.wait_for(changed.wait(), 30)
        finally:
            running.cancel()
        return news

    began = time.monotonic()
    return asyncio.run(run()), time.monotonic() - began


def test_a_certificate_is_renewed_by_a_process_of_its_own_before_it_ends(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data", machine_lifetime_hours=6 / 3600) as server:
        before = enrolled(server, tmp_path / "pi")
        news, took_s = watched(tmp_path / "pi")
        assert news == ["renewed"]
        assert 3 < took_s < 6  # at two thirds of six seconds, and in time
        assert Validity.read(tmp_path / "pi").serial != before.serial
        with Stream.of(tmp_path / "pi") as stream:
            stream.welcome()


def test_one_that_expired_offline_comes_back_without_hands(tmp_path: Path) -> None:
    data, pi = tmp_path / "data", tmp_path / "pi"
    with tls_serving(data, clock=shifted(days=-100)) as server:
        enrolled(server, pi)
        port = server.address.rpartition(":")[2]
    with tls_serving(data, listen=f"127.0.0.1:{port}", listen_machines="127.0.0.1:0") as server:
        target = server.app.machines_address
        with Stream(Address.of_machine(MachineIdentity.load(pi), target)) as stream:
            with pytest.raises(CertificateRefused) as raised:
                stream.welcome()
            assert "podium identity renew" in raised.value.next_step
        news, took_s = watched(pi, hurry=True)
        assert news == ["renewed"]
        assert took_s < 30
        with Stream.of(pi) as stream:
            stream.welcome()


def test_one_that_expired_too_long_ago_is_told_to_enrol(tmp_path: Path) -> None:
    data, pi = tmp_path / "data", tmp_path / "pi"
    with tls_serving(data, clock=shifted(days=-181)) as server:
        enrolled(server, pi)
        port = server.address.rpartition(":")[2]
    with tls_serving(data, listen=f"127.0.0.1:{port}", listen_machines="127.0.0.1:0") as server:
        with pytest.raises(RenewalTooLate, match="the server's clock says") as raised:
            renew(pi, clock=now)
        assert "podium enroll" in raised.value.next_step
        news, took_s = watched(pi, hurry=True)
        assert news == ["RENEWAL_TOO_LATE"]
        assert took_s < 30
        enrolled(server, pi)  # in the same folder, with a token for the name
        with Stream.of(pi) as stream:
            stream.welcome()


def test_revocation_ends_a_live_stream_within_five_seconds(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, pi)
        with Stream.of(pi) as stream, operator(server) as client:
            stream.welcome()
            began = time.monotonic()
            revoked = client.revoke(DEVICE, "pi-1", reason="lost on a train")
            assert isinstance(stream.ended_with(), CertificateRevoked)
            assert time.monotonic() - began < 5
            assert revoked.ended_calls == 1
            assert revoked.identity.revoke_reason == "lost on a train"
        with Stream.of(pi) as stream, pytest.raises(CertificateRevoked) as raised:
            stream.welcome()
        assert "podium machine invite" in raised.value.next_step
        news, took_s = watched(pi, hurry=True)
        assert news == ["CERTIFICATE_REVOKED"]
        assert took_s < 30
    with tls_serving(tmp_path / "data") as server:  # and after a restart
        moved = Address.of_machine(MachineIdentity.load(pi), server.app.machines_address)
        with Stream(moved) as stream, pytest.raises(CertificateRevoked):
            stream.welcome()
        enrolled(server, pi)
        with Stream.of(pi) as stream:
            stream.welcome()


def test_enrolling_again_ends_the_stream_of_the_one_before(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, tmp_path / "old")
        with Stream.of(tmp_path / "old") as stream:
            stream.welcome()
            enrolled(server, tmp_path / "new")
            assert isinstance(stream.ended_with(), CertificateRevoked)
        with Stream.of(tmp_path / "old") as stream, pytest.raises(CertificateRevoked):
            stream.welcome()
        with Stream.of(tmp_path / "new") as stream:
            stream.welcome()


def test_a_stolen_certificate_is_noticed_when_it_is_renewed(tmp_path: Path) -> None:
    owner, thief = tmp_path / "owner", tmp_path / "thief"
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, owner)
        with Stream.of(owner) as stream:
            stream.welcome()
        shutil.copytree(owner, thief, symlinks=True)
        renew(owner, clock=now)
        with Stream.of(owner) as stream:
            stream.welcome()
        assert not contested(server)
        news, took_s = watched(thief, hurry=True)
        assert news == ["CERTIFICATE_SUPERSEDED"]
        assert took_s < 30
        assert contested(server)
        with pytest.raises(CertificateSuperseded, match="two holders") as raised:
            renew(thief, clock=now)
        assert "revokes" in raised.value.next_step
        with Stream.of(owner) as stream:  # which of them is the thief, a person decides
            stream.welcome()


def test_two_processes_with_one_certificate_are_noticed(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, pi)
        with Stream.of(pi, session="first") as first:
            first.welcome()
            first.acknowledged()
            with Stream.of(pi, session="second") as second:
                second.welcome()
                second.acknowledged()
                assert first.ended_with()
                with Stream.of(pi, session="first") as again:
                    refused = again.ended_with()
                assert refused.code == "CERTIFICATE_SHARED"
                assert refused.next_step
        ends = time.monotonic() + 30
        while not contested(server):
            assert time.monotonic() < ends
            time.sleep(0.02)


@pytest.mark.parametrize("days", [365, -365, -20_000])
def test_a_device_whose_clock_is_off_enrols_connects_and_renews(tmp_path: Path, days: int) -> None:
    """TLS at such a clock is held by test_authority; this is everything else that looks at the clock."""
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, pi, clock=shifted(days=days))
        validity = Validity.read(pi)
        assert validity.renewal_due_in(shifted(days=days)(), 0.0) > timedelta(days=59)
        with Stream.of(pi) as stream:
            said = stream.welcome().time.ToDatetime(tzinfo=now().tzinfo)
        assert f"{abs(days)} days" in clock_warning(shifted(days=days)(), said)
        news, _ = watched(pi, shifted(days=days), hurry=True)
        assert news == ["renewed"]
        # The clock is set right: at most one renewal more, and then it is as it should be.
        if Validity.read(pi).renewal_due_in(now(), 0.0) <= timedelta(0):
            news, _ = watched(pi, now)
            assert news == ["renewed"]
        assert timedelta(0) < Validity.read(pi).renewal_due_in(now(), 0.0)


def test_a_server_whose_clock_was_a_year_ahead_is_trusted_and_trusts_afterwards(tmp_path: Path) -> None:
    data, pi = tmp_path / "data", tmp_path / "pi"
    with tls_serving(data, clock=shifted(days=365)) as server:
        enrolled(server, pi)
        with Stream.of(pi) as stream:
            stream.welcome()
        port, back = (address.rpartition(":")[2] for address in (server.address, server.app.machines_address))
    with tls_serving(data, listen=f"127.0.0.1:{port}", listen_machines=f"127.0.0.1:{back}"):
        with Stream.of(pi) as stream:
            stream.welcome()
        renew(pi, clock=now)
        with Stream.of(pi) as stream:
            stream.welcome()


def test_a_server_that_runs_for_years_renews_its_own_certificate_at_both_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_LOOKED_AT_EVERY_S", 0.0)
    passed = timedelta(0)

    def clock() -> datetime:
        return now() + passed

    def shown(server: Running) -> list[str]:
        """What each port shows."""
        addresses = (server.address, server.app.machines_address)
        return [
            ssl.get_server_certificate((host, int(port)), timeout=20)
            for host, _, port in (address.rpartition(":") for address in addresses)
        ]

    with tls_serving(tmp_path / "data", clock=clock) as server:
        first = shown(server)
        assert first[0] == first[1]
        assert shown(server) == first
        passed = timedelta(days=500)
        second = shown(server)
        assert second[0] == second[1] != first[0]
        renewed = x509.load_pem_x509_certificate(second[0].encode())
        assert renewed.not_valid_after_utc > clock() + timedelta(days=400)
        passed = timedelta(0)
        enrolled(server, tmp_path / "pi")
        with Stream.of(tmp_path / "pi") as stream:
            stream.welcome()  # TLS still asks for a certificate here, and takes this one

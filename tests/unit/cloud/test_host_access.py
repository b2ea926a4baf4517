"""Which certificates of agent hosts the server takes as good, and what it shows them."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from cloud.host_access import HostAccess
from tests.unit.cloud.identity.ground import Ground, Machine


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def enrolled_host(ground: Ground, name: str) -> Machine:
    token, _ = ground.desk.invite("agent_host", name=name, host_names=("127.0.0.1",), by="ann")
    machine = Machine()
    machine.certificate_pem = ground.desk.enrol(token.text, machine.csr).certificate_pem
    return machine


def test_exactly_the_hosts_on_record_are_trusted(ground: Ground) -> None:
    host, _ = enrolled_host(ground, "a"), ground.enrolled("pi-1")
    access = HostAccess(ground.authority, ground.revocations, clock=ground.clock, clock_s=Seconds())
    assert access().trusted == {host.certificate_pem}
    ground.store.close()


def test_a_new_host_is_trusted_soon_and_one_that_was_taken_back_at_once_no_more(ground: Ground) -> None:
    seconds = Seconds()
    access = HostAccess(ground.authority, ground.revocations, clock=ground.clock, clock_s=seconds)
    assert access().trusted == frozenset()
    first, second = enrolled_host(ground, "a"), enrolled_host(ground, "b")
    seconds.now += 1
    assert access().trusted == {first.certificate_pem, second.certificate_pem}
    ground.desk.revoke("agent_host", "a", reason="lost", by="ann")
    access.look_again()
    assert access().trusted == {second.certificate_pem}
    ground.store.close()


def test_a_renewed_host_is_trusted_with_both_certificates_until_the_old_one_is_replaced(ground: Ground) -> None:
    old = enrolled_host(ground, "a")
    new = ground.renewed(old)
    access = HostAccess(ground.authority, ground.revocations, clock=ground.clock, clock_s=Seconds())
    assert access().trusted == {old.certificate_pem, new.certificate_pem}
    ground.revocations.check(new.serial)  # its first use
    ground.clock.advance(seconds=21)
    access.look_again()
    assert access().trusted == {new.certificate_pem}
    ground.store.close()


def test_the_server_shows_a_certificate_of_a_worker_that_opens_nothing_at_its_own_port(ground: Ground) -> None:
    access = HostAccess(ground.authority, ground.revocations, clock=ground.clock)
    shown = x509.load_pem_x509_certificate(access().certificate_pem)
    assert ground.authority.issued(shown)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier("podium://worker/conductor")]
    usage = shown.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert ground.revocations.state(shown.serial_number) is None
    ground.store.close()


def test_a_server_that_runs_for_years_shows_a_certificate_that_has_not_expired(ground: Ground) -> None:
    seconds = Seconds()
    access = HostAccess(ground.authority, ground.revocations, clock=ground.clock, clock_s=seconds)
    first = access()
    for _ in range(4):
        ground.clock.advance(days=300)
        seconds.now += 300 * 86_400
        shown = x509.load_pem_x509_certificate(access().certificate_pem)
        assert shown.not_valid_after_utc > ground.clock()
    seconds.now += 1
    assert access() == access() != first
    ground.store.close()

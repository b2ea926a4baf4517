"""Renewal: before and after expiry, with lost answers, by the wrong holder."""

from datetime import timedelta

import pytest
from cryptography import x509

from cloud.identity.desk import MAX_RENEWALS
from podium.errors import LimitExceeded
from podium.identity.keys import make_key, signature
from podium.link.certificates import (
    CertificateRevoked,
    CertificateSuperseded,
    CertificateUnknown,
    EnrolmentTokenExpired,
    PossessionNotProven,
    RenewalTooLate,
)
from tests.unit.cloud.identity.ground import Ground, Machine


def test_the_new_certificate_replaces_the_old_one_when_it_is_first_used(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.revocations.check(old.serial)
    ground.clock.advance(days=60)
    new = ground.renewed(old)
    ground.revocations.check(old.serial)  # the machine may not have the new one
    ground.revocations.check(new.serial)
    ground.revocations.check(old.serial)  # another process of the machine takes it up a moment later
    ground.clock.advance(seconds=21)
    with pytest.raises(CertificateSuperseded, match="device pi-1"):
        ground.revocations.check(old.serial)
    ground.revocations.check(new.serial)
    end = x509.load_pem_x509_certificate(new.certificate_pem).not_valid_after_utc
    assert end == ground.clock().replace(microsecond=0) + timedelta(days=90) - timedelta(seconds=21)


def test_a_lost_answer_can_be_asked_for_again(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.revocations.check(old.serial)
    key = make_key()
    first, again = ground.renewed(old, key), ground.renewed(old, key)
    assert first.certificate_pem == again.certificate_pem
    other = ground.renewed(old)  # or with another key, when the first was lost with its disk
    ground.revocations.check(other.serial)
    ground.clock.advance(minutes=1)
    with pytest.raises(CertificateSuperseded):
        ground.revocations.check(first.serial)


def test_who_holds_a_certificate_cannot_fill_the_record_with_renewals(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    other = ground.enrolled("pi-2")
    key = make_key()
    for _ in range(MAX_RENEWALS - 1):
        ground.renewed(old)
    last = ground.renewed(old, key)
    with pytest.raises(LimitExceeded, match="pi-1"):
        ground.renewed(old)
    assert ground.renewed(old, key).serial == last.serial  # a lost answer costs nothing
    ground.renewed(other)
    ground.clock.advance(hours=1)
    ground.renewed(old)


def test_a_machine_that_was_off_for_months_comes_back(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.clock.advance(days=90 + 89)
    new = ground.renewed(old)
    ground.revocations.check(new.serial)


def test_past_the_grace_the_error_names_both_clocks_and_enrolment(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.clock.advance(days=180)
    with pytest.raises(RenewalTooLate, match="server's clock says 2027-05-28 12:00") as raised:
        ground.renewed(old)
    assert "podium machine invite" in raised.value.next_step
    assert "podium enroll" in raised.value.next_step
    ground.revocations.check(ground.enrolled("pi-1").serial)  # a token for the name helps


def test_a_server_whose_clock_was_a_year_ahead_forgets_nobody(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.revocations.check(old.serial)
    ground.clock.advance(days=365)
    with pytest.raises(RenewalTooLate):
        ground.renewed(old)
    ground.clock.advance(days=-365)
    ground.revocations.check(old.serial)
    ground.revocations.check(ground.renewed(old).serial)


def test_a_server_whose_clock_is_set_back_a_year_takes_what_it_gave(ground: Ground) -> None:
    old, token = ground.enrolled("pi-1"), ground.token("pi-2")
    ground.clock.advance(days=-365)
    ground.revocations.check(old.serial)
    certificate = x509.load_pem_x509_certificate(old.certificate_pem)
    assert certificate.not_valid_before_utc < ground.clock()
    ground.revocations.check(ground.renewed(old).serial)
    ground.clock.advance(days=367)
    with pytest.raises(EnrolmentTokenExpired):
        ground.desk.enrol(token, Machine().csr)


def test_who_renews_with_a_replaced_certificate_is_noticed(ground: Ground) -> None:
    owner = ground.enrolled("pi-1")
    thief = Machine(owner.key, owner.certificate_pem)
    ground.revocations.check(owner.serial)
    owner = ground.renewed(owner)
    ground.revocations.check(owner.serial)
    with pytest.raises(CertificateSuperseded, match="two holders"):
        ground.renewed(thief)
    (machine,) = ground.desk.machines()
    assert machine.contested_time == ground.clock()
    assert ground.audit.actions[-1] == "identity.contested"
    ground.revocations.check(owner.serial)  # a person decides
    with pytest.raises(CertificateSuperseded):
        ground.renewed(thief)
    assert ground.audit.actions.count("identity.contested") == 1  # within a minute


def test_a_thief_who_was_first_is_noticed_by_the_owner(ground: Ground) -> None:
    owner = ground.enrolled("pi-1")
    ground.revocations.check(owner.serial)
    thief = ground.renewed(owner)
    ground.revocations.check(thief.serial)
    ground.clock.advance(minutes=1)
    with pytest.raises(CertificateSuperseded):
        ground.revocations.check(owner.serial)
    with pytest.raises(CertificateSuperseded, match="two holders"):
        ground.renewed(owner)
    ground.desk.revoke("device", "pi-1", reason="stolen", by="ann")
    with pytest.raises(CertificateRevoked):
        ground.revocations.check(thief.serial)
    again = ground.enrolled("pi-1")
    ground.revocations.check(again.serial)
    assert ground.desk.machines()[0].contested_time is None


def test_what_proves_nothing(ground: Ground) -> None:
    mine, other = ground.enrolled("pi-1"), ground.enrolled("pi-2")
    csr = Machine().csr
    for name, proof in {
        "none": b"",
        "another key's": signature(other.key, csr),
        "of another request": signature(mine.key, Machine().csr),
        "garbage": b"\x30" * 5000,
    }.items():
        with pytest.raises(PossessionNotProven):
            ground.desk.renew(mine.certificate_pem, csr, proof)
        assert len(ground.store.certificates()) == 2, name
    assert ground.audit.actions.count("identity.contested") == 0


def test_certificates_that_are_not_ours(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Ground(tmp_path_factory.mktemp("other"))
    theirs = other.enrolled("pi-1")
    for pem in (b"", b"x", theirs.certificate_pem, ground.authority.pem, theirs.certificate_pem * 50):
        with pytest.raises(CertificateUnknown):
            ground.renew(Machine(theirs.key, pem), Machine())
    other.store.close()


def test_a_certificate_that_lost_its_record_is_unknown(ground: Ground) -> None:
    key = make_key()
    lost = ground.authority.machine_certificate(
        "device", "pi-1", key.public_key(), now=ground.clock(), lifetime=timedelta(days=1)
    )
    with pytest.raises(CertificateUnknown):
        ground.revocations.check(lost.serial_number)


def test_a_revoked_machine_gets_no_other(ground: Ground) -> None:
    machine, waiting = ground.enrolled("pi-1"), ground.token("pi-1")
    revoked = ground.desk.revoke("device", "pi-1", reason="lost", by="ann")
    assert revoked.revoke_reason == "lost"
    with pytest.raises(CertificateRevoked):
        ground.renewed(machine)
    with pytest.raises(CertificateRevoked):
        ground.revocations.check(machine.serial)
    with pytest.raises(EnrolmentTokenExpired):
        ground.desk.enrol(waiting, Machine().csr)  # a token that waited for its name went too
    assert ground.desk.revoke("device", "pi-1", reason="again", by="bob").revoke_reason == "lost"

"""Certificates as clocks and TLS libraries judge them."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from cloud.identity.authority import Authority
from cloud.identity.files import TlsFilesUnusable
from cloud.tls import given_identity, local_identity, names_in
from podium.identity.token import EnrolmentToken

NOW = datetime(2026, 11, 30, tzinfo=UTC)
NAMES = ("localhost", "127.0.0.1", "hub.example")


def trusted(authority: x509.Certificate, server: x509.Certificate, moment: datetime) -> bool:
    """Whether a client whose clock says `moment` trusts the server."""
    verifier = PolicyBuilder().store(Store([authority])).time(moment)
    try:
        verifier.build_server_verifier(x509.DNSName("hub.example")).verify(server, [])
        verifier.build_server_verifier(x509.IPAddress(ipaddress.ip_address("127.0.0.1"))).verify(server, [])
    except VerificationError:
        return False
    return True


def test_a_device_trusts_the_server_whatever_year_its_clock_says(tmp_path: Path) -> None:
    identity = local_identity(Authority.load_or_make(tmp_path, NOW), host_names=NAMES, now=NOW)
    # At its worst: the server was started again just before it would have made a new certificate.
    late = NOW + timedelta(days=399)
    assert local_identity(Authority.load_or_make(tmp_path, late), host_names=NAMES, now=late) == identity
    server = x509.load_pem_x509_certificate(identity.certificate_pem)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    for moment in (
        datetime(1970, 1, 2, tzinfo=UTC),
        datetime(2000, 1, 1, tzinfo=UTC),
        late - timedelta(days=366),
        late,
        late + timedelta(days=366),
    ):
        assert trusted(authority, server, moment), moment
    assert not trusted(authority, server, NOW + timedelta(days=801))


def test_the_authority_outlives_what_it_signs(tmp_path: Path) -> None:
    authority = Authority.load_or_make(tmp_path, NOW)
    assert authority.certificate.not_valid_after_utc > NOW + timedelta(days=20 * 365)
    end = authority.certificate.not_valid_after_utc
    key = authority.key.public_key()
    late = authority.machine_certificate(
        "device", "a", key, now=end - timedelta(days=1), lifetime=timedelta(days=90)
    )
    assert late.not_valid_after_utc == end


def test_another_authority_is_told_by_its_name_and_does_not_vouch(tmp_path: Path) -> None:
    one, other = (Authority.load_or_make(tmp_path / name, NOW) for name in "ab")
    assert one.certificate.subject != other.certificate.subject
    key = other.key.public_key()
    foreign = other.machine_certificate("device", "a", key, now=NOW, lifetime=timedelta(days=1))
    assert other.issued(foreign)
    assert not one.issued(foreign)
    assert not one.issued(other.certificate)


def test_a_token_of_it_is_short_enough_to_copy(tmp_path: Path) -> None:
    authority = Authority.load_or_make(tmp_path, NOW)
    token = EnrolmentToken.make(authority.der)
    assert len(token.text) < 700
    assert token.ca_pem == authority.pem
    assert EnrolmentToken.parse(f"  {token.text[:100]}\n{token.text[100:]}\n") == token


def test_keys_that_do_not_fit_are_told(tmp_path: Path) -> None:
    Authority.load_or_make(tmp_path / "a", NOW)
    Authority.load_or_make(tmp_path / "b", NOW)
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(TlsFilesUnusable, match="does not belong"):
        Authority.load_or_make(tmp_path / "a", NOW)


def test_a_crash_between_key_and_certificate_is_mended(tmp_path: Path) -> None:
    first = local_identity(Authority.load_or_make(tmp_path, NOW), host_names=NAMES, now=NOW)
    (tmp_path / "server.pem").unlink()
    again = local_identity(Authority.load_or_make(tmp_path, NOW), host_names=NAMES, now=NOW)
    assert again.certificate_pem != first.certificate_pem
    (tmp_path / "server.key").write_bytes(first.key_pem)
    mended = local_identity(Authority.load_or_make(tmp_path, NOW), host_names=NAMES, now=NOW)
    assert mended.key_pem not in (first.key_pem, again.key_pem)


def test_an_operators_certificate_gives_its_names_and_its_authority(tmp_path: Path) -> None:
    local_identity(Authority.load_or_make(tmp_path, NOW), host_names=NAMES, now=NOW)
    given = given_identity(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "ca.pem")
    assert given.ca_file == tmp_path / "ca.pem"
    assert set(names_in(given)) == set(NAMES)
    with pytest.raises(TlsFilesUnusable):
        given_identity(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "nothing.pem")

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from cloud.identity.authority import Authority
from cloud.tls import ServerIdentity, Shown, TlsFilesUnusable, given_identity, local_identity

NAMES = ("localhost", "127.0.0.1", "::1", "box.example")
NOW = datetime(2026, 11, 29, tzinfo=UTC)


def certified(folder: Path, now: datetime = NOW, names: tuple[str, ...] = NAMES) -> ServerIdentity:
    return local_identity(Authority.load_or_make(folder, now), host_names=names, now=now)


def test_an_authority_and_a_certificate_are_made_once(tmp_path: Path) -> None:
    first = certified(tmp_path / "tls")
    again = certified(tmp_path / "tls")
    assert first == again
    assert first.ca_file == tmp_path / "tls" / "ca.pem"
    names = x509.load_pem_x509_certificate(first.certificate_pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert set(names.value.get_values_for_type(x509.DNSName)) == {"localhost", "box.example"}
    assert len(names.value.get_values_for_type(x509.IPAddress)) == 2
    for private in ("ca.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "tls" / private).stat().st_mode) == 0o600


def test_a_tls_library_accepts_the_chain(tmp_path: Path) -> None:
    identity = certified(tmp_path, datetime.now(UTC))
    client = ssl.create_default_context(cafile=str(identity.ca_file))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ours.version() in ("TLSv1.2", "TLSv1.3")


def test_a_certificate_is_renewed_before_it_ends_and_for_new_names(tmp_path: Path) -> None:
    first = certified(tmp_path)
    later = certified(tmp_path, NOW + timedelta(days=410))
    renamed = certified(tmp_path, NOW + timedelta(days=410), (*NAMES, "new"))
    assert len({first.certificate_pem, later.certificate_pem, renamed.certificate_pem}) == 3
    assert first.ca_file is not None
    authority = x509.load_pem_x509_certificate(first.ca_file.read_bytes())
    x509.load_pem_x509_certificate(renamed.certificate_pem).verify_directly_issued_by(authority)


def test_a_new_authority_signs_anew(tmp_path: Path) -> None:
    first = certified(tmp_path)
    (tmp_path / "ca.pem").unlink()
    second = certified(tmp_path)
    assert second.ca_file is not None
    authority = x509.load_pem_x509_certificate(second.ca_file.read_bytes())
    x509.load_pem_x509_certificate(second.certificate_pem).verify_directly_issued_by(authority)
    assert first.certificate_pem != second.certificate_pem


def test_an_authority_without_its_key_is_told(tmp_path: Path) -> None:
    certified(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(TlsFilesUnusable, match=r"ca\.key"):
        certified(tmp_path)


def test_an_operators_files_must_fit(tmp_path: Path) -> None:
    certified(tmp_path / "a")
    certified(tmp_path / "b")
    own = given_identity(tmp_path / "a" / "server.pem", tmp_path / "a" / "server.key")
    assert own.ca_file is None
    with pytest.raises(TlsFilesUnusable, match="does not belong"):
        given_identity(tmp_path / "a" / "server.pem", tmp_path / "b" / "server.key")
    with pytest.raises(TlsFilesUnusable, match="not a PEM certificate"):
        given_identity(tmp_path / "a" / "server.key", tmp_path / "a" / "server.key")
    with pytest.raises(TlsFilesUnusable, match="cannot be read"):
        given_identity(tmp_path / "no.pem", tmp_path / "a" / "server.key")


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_exchanged_certificate_is_shown_and_one_that_cannot_be_used_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def files(name: str) -> tuple[Path, Path]:
        certified(tmp_path / name)
        return tmp_path / name / "server.pem", tmp_path / name / "server.key"

    (certificate, key), (other, other_key) = files("a"), files("b")
    seconds = Seconds()
    shown = Shown(lambda: given_identity(certificate, key), clock_s=seconds)
    first = shown.now
    certificate.write_bytes(other.read_bytes())  # in the middle of the exchange
    assert shown.newer() is None
    assert not caplog.records  # nobody looked yet
    seconds.now += 60
    assert shown.newer() is None
    assert "goes on with its certificate as it was: TLS_FILES_UNUSABLE" in caplog.text
    assert shown.now == first
    key.write_bytes(other_key.read_bytes())
    seconds.now += 60
    assert shown.newer() == given_identity(other, other_key)
    seconds.now += 60
    assert shown.newer() is None

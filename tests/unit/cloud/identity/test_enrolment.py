"""Tokens and what they are exchanged for."""

import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podium.errors import InvalidRequest, PodiumError, StorageFull
from podium.identity.keys import make_key
from podium.identity.token import EnrolmentToken
from podium.link.certificates import (
    CertificateRequestInvalid,
    EnrolmentNotCovered,
    EnrolmentTokenExpired,
    EnrolmentTokenInvalid,
    EnrolmentTokenUsed,
    IdentityNameTaken,
)
from tests.unit.cloud.identity.ground import Ground, Machine


def test_a_token_becomes_a_certificate_with_the_names_of_the_token(ground: Ground) -> None:
    machine = ground.enrolled("pi-1")
    certificate = x509.load_pem_x509_certificate(machine.certificate_pem)
    certificate.verify_directly_issued_by(ground.authority.certificate)
    assert certificate.subject.rfc4514_string() == "CN=pi-1"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier("podium://device/pi-1")]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.public_key() == machine.key.public_key()
    assert ground.audit.actions == ["identity.invited", "identity.enrolled"]


def test_what_a_request_says_about_names_and_rights_is_not_taken_over(ground: Ground) -> None:
    key = make_key()
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "administrator")]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier("podium://site/other")]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    issued = ground.desk.enrol(ground.token("pi-1"), request.public_bytes(serialization.Encoding.PEM))
    certificate = x509.load_pem_x509_certificate(issued.certificate_pem)
    assert certificate.subject.rfc4514_string() == "CN=pi-1"
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier("podium://device/pi-1")]


def test_many_machines_at_once_share_one_use(ground: Ground) -> None:
    text, outcomes = ground.token(), []
    start = threading.Barrier(12)

    def enrol(number: int) -> None:
        csr = Machine().csr
        start.wait()
        try:
            outcomes.append(ground.desk.enrol(text, csr, name=f"pi-{number}").machine.name)
        except PodiumError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=enrol, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("ENROLMENT_TOKEN_USED") == 11
    assert len(ground.desk.machines()) == len(ground.store.certificates()) == 1


def test_a_token_for_three_enrols_three(ground: Ground) -> None:
    text = ground.token(uses=3)
    for number in range(3):
        ground.desk.enrol(text, Machine().csr, name=f"pi-{number}")
    with pytest.raises(EnrolmentTokenUsed, match="3 of 3"):
        ground.desk.enrol(text, Machine().csr, name="pi-3")


def test_an_answer_that_was_lost_is_given_again_to_the_same_key_only(ground: Ground) -> None:
    text, machine = ground.token("pi-1"), Machine()
    first = ground.desk.enrol(text, machine.csr)
    ground.clock.advance(days=2)  # past the token's time: the use was in time
    again = ground.desk.enrol(text, machine.csr)
    assert again == first
    with pytest.raises(EnrolmentTokenUsed):
        ground.desk.enrol(text, Machine().csr)
    assert len(ground.store.certificates()) == 1


def test_a_token_ends(ground: Ground) -> None:
    text = ground.token("pi-1")
    ground.clock.advance(days=1)
    with pytest.raises(EnrolmentTokenExpired, match="server's clock says 2026-11-30 12:00"):
        ground.desk.enrol(text, Machine().csr)
    assert ground.desk.machines() == []


def test_a_token_is_for_its_kind_and_its_name(ground: Ground) -> None:
    text = ground.token("pi-1")
    with pytest.raises(EnrolmentNotCovered, match="not for a site"):
        ground.desk.enrol(text, Machine().csr, kind="site")
    with pytest.raises(EnrolmentNotCovered, match="name pi-1, not for 'pi-2'"):
        ground.desk.enrol(text, Machine().csr, name="pi-2")
    assert ground.desk.enrol(text, Machine().csr, name="pi-1", kind="device").machine.name == "pi-1"


def test_tokens_that_are_none(ground: Ground) -> None:
    good = EnrolmentToken.parse(ground.token("pi-1"))
    forged = EnrolmentToken(token_id=good.token_id, secret=bytes(32))
    for text in (
        "",
        "token",
        good.text[:50],
        good.text.replace("podium1", "podium2"),
        good.text + "!",
        "\0" * 100,
        "a." * 5000,
        EnrolmentToken.make(b"").text,
        forged.text,
    ):
        with pytest.raises(EnrolmentTokenInvalid) as raised:
            ground.desk.enrol(text, Machine().csr)
        assert good.text.split(".")[2] not in f"{raised.value}{raised.value.evidence}"
    assert ground.desk.machines() == []


@pytest.mark.parametrize(
    "name", ["", "-a", ".", "..", "a/b", "a b", "a\n", "ä", "a" * 64, "a\0", "../../etc", "a:b", "%00", "CN=x,O=y"]
)
def test_names_that_machines_cannot_have(ground: Ground, name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        ground.desk.enrol(ground.token(), Machine().csr, name=name)
    assert raised.value.field == "name"
    assert ground.desk.machines() == []


def test_a_taken_name_needs_a_token_of_its_own_and_then_ends_the_one_before(ground: Ground) -> None:
    old = ground.enrolled("pi-1")
    ground.revocations.check(old.serial)
    with pytest.raises(IdentityNameTaken):
        ground.desk.enrol(ground.token(), Machine().csr, name="pi-1")
    ground.revocations.check(old.serial)
    fresh = Machine()
    issued = ground.desk.enrol(ground.token("pi-1"), fresh.csr)
    assert issued.took_back
    assert ground.revocations.is_revoked(old.serial)
    ground.revocations.check(issued.machine.serial)
    assert [machine.name for machine in ground.desk.machines()] == ["pi-1"]


def test_kinds_have_names_of_their_own(ground: Ground) -> None:
    ground.enrolled("north")
    ground.desk.enrol(ground.token("north", kind="site"), Machine().csr)
    assert [(machine.kind, machine.name) for machine in ground.desk.machines()] == [
        ("device", "north"),
        ("site", "north"),
    ]
    assert [machine.kind for machine in ground.desk.machines("site")] == ["site"]


def test_requests_that_are_not_signed(ground: Ground) -> None:
    def request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
        built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
        return built.public_bytes(serialization.Encoding.PEM)

    good = Machine().csr
    der = bytearray(x509.load_pem_x509_csr(good).public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    unsigned = x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM)
    bad = {
        "empty": b"",
        "garbage": b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        "a certificate": ground.authority.pem,
        "huge": good + b"\n" * 10_000,
        "not signed with its key": unsigned,
        "weak curve": request(ec.generate_private_key(ec.SECP224R1())),
        "rsa": request(rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    }
    text = ground.token("pi-1")
    for what, csr in bad.items():
        with pytest.raises(CertificateRequestInvalid):
            ground.desk.enrol(text, csr)
        assert ground.desk.machines() == [], what
    ground.desk.enrol(text, good)  # refusals cost no use


def test_what_cannot_be_recorded_is_not_given(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ground.token("pi-1")

    def full(entry: object) -> None:
        raise StorageFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(ground.audit, "append", full)
        with pytest.raises(StorageFull):
            ground.desk.enrol(text, Machine().csr)
    assert ground.store.certificates() == []
    ground.desk.enrol(text, Machine().csr)


def test_only_a_hash_of_the_secret_is_stored(ground: Ground, tmp_path: Path) -> None:
    token = EnrolmentToken.parse(ground.token("pi-1"))
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("identity.sqlite*"))
    assert token.token_id.encode() in stored
    assert token.secret not in stored
    assert token.text.split(".")[2].encode() not in stored
    assert token.text.split(".")[2] not in repr(token)


def test_invitations_that_make_no_sense(ground: Ground) -> None:
    for name, uses in (("a/b", 1), ("pi-1", 2), ("", 0), ("", 10_001)):
        with pytest.raises(InvalidRequest):
            ground.desk.invite("device", name=name, uses=uses, by="ann")

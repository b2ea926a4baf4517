"""Certificates of agent hosts: machines that others connect to, under names that an operator gave them."""

import ipaddress

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from podium.errors import InvalidRequest
from tests.unit.cloud.identity.ground import Ground, Machine

NAMES = ("agents.example", "192.0.2.7", "::1")


def enrolled(ground: Ground, names: tuple[str, ...] = NAMES) -> Machine:
    token, _ = ground.desk.invite("agent_host", name="gpu-1", host_names=names, by="ann")
    machine = Machine()
    machine.certificate_pem = ground.desk.enrol(token.text, machine.csr).certificate_pem
    return machine


def trusted_as(ground: Ground, machine: Machine, subject: x509.DNSName | x509.IPAddress) -> bool:
    verifier = PolicyBuilder().store(Store([ground.authority.certificate])).time(ground.clock())
    certificate = x509.load_pem_x509_certificate(machine.certificate_pem)
    try:
        verifier.build_server_verifier(subject).verify(certificate, [])
    except VerificationError:
        return False
    return True


def test_a_host_may_be_connected_to_under_the_names_of_its_invitation_and_no_others(ground: Ground) -> None:
    machine = enrolled(ground)
    assert trusted_as(ground, machine, x509.DNSName("agents.example"))
    assert trusted_as(ground, machine, x509.IPAddress(ipaddress.ip_address("192.0.2.7")))
    assert not trusted_as(ground, machine, x509.DNSName("other.example"))
    assert ("identity.invited", [*NAMES]) in [
        (entry.action, entry.details.get("hosts")) for entry in ground.audit.entries
    ]


def test_a_renewal_keeps_the_names(ground: Ground) -> None:
    machine = enrolled(ground)
    ground.clock.advance(days=60)
    assert trusted_as(ground, ground.renewed(machine), x509.DNSName("agents.example"))


def test_a_machine_without_host_names_cannot_pose_as_a_server(ground: Ground) -> None:
    for machine in (ground.enrolled("pi-1"), enrolled(ground, ())):
        certificate = x509.load_pem_x509_certificate(machine.certificate_pem)
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize("kind", ["device", "site", "worker"])
def test_only_agent_hosts_have_names_they_are_reached_by(ground: Ground, kind: str) -> None:
    with pytest.raises(InvalidRequest, match="only agent hosts") as caught:
        ground.desk.invite(kind, host_names=("a.example",), by="ann")
    assert caught.value.field == "host_names"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "*.example",
        "a.example:7443",
        "https://a.example",
        "podium://worker/conductor",
        "a..example",
        "-a.example",
        "a.example.",
        "1.2.3.4.5",
        "300.1.1.1",
        "fe80::1%eth0",
        "a b.example",
        "ä.example",
        "a.example\n",
        "A.EXAMPLE",
        "x" * 64,
        ".".join(["a" * 60] * 5),
    ],
)
def test_what_is_no_name_does_not_get_into_a_certificate(ground: Ground, name: str) -> None:
    with pytest.raises(InvalidRequest, match="neither a DNS name nor an IP address"):
        ground.desk.invite("agent_host", host_names=(name,), by="ann")


def test_there_is_an_end_to_names(ground: Ground) -> None:
    with pytest.raises(InvalidRequest, match="at most"):
        ground.desk.invite("agent_host", host_names=tuple(f"a{number}.example" for number in range(21)), by="ann")

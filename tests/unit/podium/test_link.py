"""Addresses: TLS unless the bytes never leave the machine."""

import pytest

from podium.errors import InvalidRequest, ServerUnavailable
from podium.link import Address, is_loopback, unreachable


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"])
def test_loopback_hosts(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.org", "localhost.evil.example", ""])
def test_other_hosts(host):
    assert not is_loopback(host)


def test_clear_text_is_refused_off_this_machine():
    with pytest.raises(InvalidRequest) as caught:
        Address.of("podium.example:7443")
    assert caught.value.field == "ca"
    assert "--ca" in caught.value.next_step


def test_a_ca_makes_any_host_acceptable(tmp_path):
    pem = b"-----BEGIN CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_bytes(pem)
    assert Address.of("podium.example:7443", tmp_path / "ca.pem").ca_pem == pem


def test_a_file_that_is_no_certificate_is_refused_before_anything_is_sent(tmp_path):
    (tmp_path / "ca.pem").write_text("# A README")
    with pytest.raises(InvalidRequest, match="no certificate") as caught:
        Address.of("podium.example:7443", tmp_path / "ca.pem")
    assert "tls/" in caught.value.next_step


@pytest.mark.parametrize(
    ("ca_pem", "said", "message", "advice"),
    [
        (None, "ipv4:127.0.0.1:1: Connection refused", "nothing listens on 127.0.0.1:1", "podium serve"),
        (b"pem", "ipv4:127.0.0.1:1: Connection refused", "nothing listens on 127.0.0.1:1", "podium serve"),
        (None, "ipv4:127.0.0.1:1: Socket closed", "hung up on a connection without TLS", "--ca"),
        (b"pem", "SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: unable", "not vouched for", "ca.pem"),
        (b"pem", "SSL_ERROR_SSL: WRONG_VERSION_NUMBER: Invalid", "does not speak TLS", "--ca"),
    ],
)
def test_why_a_server_cannot_be_reached_is_said_in_words_about_it(ca_pem, said, message, advice):
    address = Address(target="127.0.0.1:1", ca_pem=ca_pem)
    explained = unreachable(address, ServerUnavailable(f"failed to connect to all addresses; {said}"))
    assert message in explained.message
    assert advice in explained.next_step
    assert said in explained.evidence[0]


def test_what_a_server_itself_said_stays():
    address = Address(target="127.0.0.1:1", ca_pem=None)
    for error in (ServerUnavailable("draining"), InvalidRequest("Connection refused")):
        assert unreachable(address, error) is error


@pytest.mark.parametrize("target", ["", "host", "host:", ":7443", "host:port"])
def test_malformed_addresses(target):
    with pytest.raises(InvalidRequest):
        Address.of(target)


def test_an_unreadable_ca_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Address.of("127.0.0.1:1", tmp_path / "none.pem")

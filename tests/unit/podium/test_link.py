"""Addresses: TLS unless the bytes never leave the machine."""

import pytest

from podium.errors import InvalidRequest
from podium.link import Address, is_loopback


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
    (tmp_path / "ca.pem").write_bytes(b"pem")
    assert Address.of("podium.example:7443", tmp_path / "ca.pem").ca_pem == b"pem"


@pytest.mark.parametrize("target", ["", "host", "host:", ":7443", "host:port"])
def test_malformed_addresses(target):
    with pytest.raises(InvalidRequest):
        Address.of(target)


def test_an_unreadable_ca_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Address.of("127.0.0.1:1", tmp_path / "none.pem")

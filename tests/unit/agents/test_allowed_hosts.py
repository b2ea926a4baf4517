"""Where agents may be reached: the operator's list, and what no list allows."""

import asyncio
import ipaddress

import pytest

from agents.allowed_hosts import NONE_LISTED, AgentAddressRefused, AllowedHosts
from agents.foreign_code import ForeignPolicy, refusals
from agents.spec import AgentSpec
from podium.errors import AgentUnreachable
from tests.unit.agents.specs import spec

METADATA = "http://169.254.169.254/latest/meta-data"


@pytest.mark.parametrize(
    ("listed", "place", "allowed"),
    [
        ("", "https://agents.example/", False),
        ("agents.example", "https://agents.example/", True),
        ("agents.example", "https://AGENTS.example./", True),
        ("agents.example", "https://agents.example.evil/", False),
        ("agents.example:8443", "https://agents.example:8443/", True),
        ("agents.example:8443", "https://agents.example/", False),
        ("agents.example:443", "https://agents.example/", True),
        ("*.example", "https://a.b.example/", True),
        ("*.example", "https://example/", False),
        ("*.example", "https://notexample/", False),
        ("*", "https://anything.at.all/", True),
        ("10.1.0.0/16", "https://10.1.2.3/", True),
        ("10.1.0.0/16", "https://10.2.2.3/", False),
        ("10.1.0.0/16:9000", "10.1.2.3:9000", True),
        ("10.1.0.0/16:9000", "10.1.2.3:22", False),
        ("[fd00::]/8:7443", "[fd00::1]:7443", True),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", True),
        ("127.0.0.1:9000", "http://127.0.0.1:6379/", False),
        ("127.0.0.1", "http://localhost/", False),
        ("127.0.0.1", "http://2130706433/", True),
        ("10.0.0.0/8", "http://0x7f000001/", False),
        ("*", METADATA, False),
        ("169.254.0.0/16", METADATA, False),
        ("*", "http://2852039166/", False),
        ("*", "http://[::ffff:169.254.169.254]/", False),
        ("*", "http://[fe80::1]/", False),
        ("*", "http://0.0.0.0/", False),
        ("*", "http://224.0.0.1/", False),
        ("*", "https://:443/", False),
        ("*", "agents.example:notaport", False),
    ],
)
def test_a_manifest_names_only_hosts_that_are_listed(listed: str, place: str, allowed: bool) -> None:
    hosts = AllowedHosts.parse([listed] if listed else [])
    assert (hosts.refusal(place) == "") is allowed


def test_this_machine_is_allowed_without_a_list_only_where_that_is_said() -> None:
    for place in ("http://127.0.0.1:9/", "http://localhost/", "[::1]:9"):
        assert "agent_hosts" in NONE_LISTED.refusal(place)
        assert AllowedHosts(loopback=True).refusal(place) == ""
    assert AllowedHosts(loopback=True).refusal("https://agents.example/")


@pytest.mark.parametrize(
    "entry", ["http://a.example", "a b", "10.0.0.0/99", "a:0", "a:99999", "[fd00::1", "*a.b", "1.2.3.400"]
)
def test_a_list_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        AllowedHosts.parse([entry])


@pytest.mark.parametrize(
    ("listed", "address", "refused"),
    [
        # The operator named the host: where it is, is the operator's word.
        ("agents.example", "10.0.0.5", False),
        ("agents.example", "127.0.0.1", False),
        ("agents.example", "169.254.169.254", True),
        # Any host is allowed: one that turns out to be inside is not meant.
        ("*", "10.0.0.5", True),
        ("*", "127.0.0.1", True),
        ("*", "::1", True),
        ("*", "::ffff:127.0.0.1", True),
        ("*.example", "192.168.1.1", True),
        ("*", "1.1.1.1", False),
        ("*,10.0.0.0/8", "10.0.0.5", False),
        # An agent of a shipped pack is on no list.
        ("", "10.0.0.5", False),
        ("", "fe80::1", True),
        ("", "64:ff9b::a9fe:a9fe", True),
    ],
)
def test_what_a_name_leads_to_is_looked_at_before_it_is_connected_to(
    listed: str, address: str, refused: bool
) -> None:
    hosts = AllowedHosts.parse([entry for entry in listed.split(",") if entry])
    why = hosts.address_refusal("agents.example", 443, ipaddress.ip_address(address))
    assert bool(why) is refused


def test_an_agent_that_is_listed_by_its_port_does_not_send_us_to_another() -> None:
    hosts = AllowedHosts.parse(["127.0.0.1:9000"])
    assert hosts.leads_out("http://127.0.0.1:9000/card", "http://127.0.0.1:6379/")
    assert not hosts.leads_out("http://127.0.0.1:9000/card", "http://127.0.0.1:9000/rpc")
    assert not hosts.leads_out("https://shipped.example/", "https://elsewhere.example/")


def test_the_check_before_a_connection_is_typed() -> None:
    with pytest.raises(AgentAddressRefused, match="169") as caught:
        asyncio.run(NONE_LISTED.check(METADATA, agent="atlas"))
    assert caught.value.agent == "atlas"
    assert "agent_hosts" in caught.value.advice
    with pytest.raises(AgentAddressRefused, match="inside this network"):
        asyncio.run(AllowedHosts.parse(["*"]).check("http://localhost:9/", agent="atlas"))
    with pytest.raises(AgentUnreachable, match="not known"):
        asyncio.run(NONE_LISTED.check("https://no-such-host.invalid/", agent="atlas"))
    asyncio.run(NONE_LISTED.check("http://127.0.0.1:9/", agent="shipped"))


def _agent(engine: str, **settings: object) -> AgentSpec:
    return spec().model_copy(update={"engine": engine, "settings": settings})


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("openai", {"base_url": METADATA}),
        ("a2a", {"card": "http://127.0.0.1:9/"}),
        ("a2a", {"card": "https://agents.example/", "hosts": ("intranet.example",)}),
        ("mcp", {"url": "https://intranet.example/mcp"}),
        ("grpc", {"endpoints": ("agents.example:7443", "127.0.0.1:22")}),
        ("mcp", {"command": ("sh",), "network": True}),
        ("process", {"callable": "a:b", "network": True}),
    ],
)
def test_every_engine_is_held_to_the_list(engine: str, settings: dict[str, object]) -> None:
    policy = ForeignPolicy(hosts=AllowedHosts.parse(["agents.example"]))
    [refusal] = refusals(_agent(engine, **settings), policy)
    assert refusal.code == "HOST_NOT_ALLOWED"
    assert "agent_hosts" in refusal.message or "link-local" in refusal.message

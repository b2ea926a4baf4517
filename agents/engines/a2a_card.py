"""The card of an A2A agent: fetched, checked against the manifest, and told from the one that was there before."""

import hashlib
import json
import logging
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx
from a2a.client.card_resolver import parse_agent_card
from a2a.types.a2a_pb2 import AgentCard, AgentInterface
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from google.protobuf.json_format import ParseError

from agents.canonical import canonical_json
from agents.engines.a2a_http import RedirectedAway, ResponseTooLarge, fetch, http_client
from agents.engines.foreign import AgentIncompatible, said
from agents.engines.settings import A2aSettings
from podium.errors import AgentUnreachable
from podium.link import is_loopback

# The SDK logs whole cards and what it cannot read; what goes wrong is raised to the caller anyway.
logging.getLogger("a2a").setLevel(logging.CRITICAL)

_MAX_SHOWN: Final = 20
MAX_CARD_BYTES: Final = 262_144
_BINDINGS: Final = {"grpc": "GRPC", "jsonrpc": "JSONRPC", "rest": "HTTP+JSON"}
_SPOKEN: Final = re.compile(r"^1(\.\d+){0,2}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCard:
    """A card that keeps what the manifest says, reduced to the interface that is used."""

    card: AgentCard
    sha256: str
    """Of its canonical JSON without signatures."""

    @property
    def interface(self) -> AgentInterface:
        """The way to the agent."""
        return self.card.supported_interfaces[0]


async def find_card(settings: A2aSettings, headers: dict[str, str], *, agent: str) -> CheckedCard:
    """Fetch an agent's card and check it.

    Args:
        settings: of the manifest.
        headers: the token, if the agent wants one.
        agent: name in error messages.

    Raises:
        AgentUnreachable: it cannot be had.
        AgentIncompatible: it is not a card, or not one that the manifest allows; every reason is listed.
    """
    return check_card(await _fetched(settings, headers, agent), settings, agent=agent)


def check_card(raw: bytes, settings: A2aSettings, *, agent: str) -> CheckedCard:
    """A card as it was fetched, checked against the manifest; raises as `find_card`."""
    try:
        given = json.loads(raw)
        sha256 = hashlib.sha256(canonical_json({**given, "signatures": None})).hexdigest()
        card = parse_agent_card(given)
    except (ValueError, TypeError, RecursionError, ParseError) as error:
        raise AgentIncompatible(f"the card of {agent} is not an A2A card: {said(error)}", agent=agent) from error
    faults = list(_faults(card, settings, sha256))
    interface = _chosen(card, settings)
    if interface is None:
        offered = [
            f"{said(way.protocol_binding)} {said(way.protocol_version)}" for way in card.supported_interfaces
        ]
        faults.append(
            f"it offers {', '.join(offered) or 'no interface'}; A2A 1.0 by {settings.binding} is asked for"
        )
    elif fault := _unsafe(interface, settings):
        faults.append(fault)
    if interface is None or faults:
        raise AgentIncompatible(
            f"the card of {agent} is not what its manifest says: {faults[0]}", evidence=faults, agent=agent
        )
    del card.supported_interfaces[:]
    card.supported_interfaces.append(interface)
    return CheckedCard(card=card, sha256=sha256)


def speaks_tls(url: str) -> bool:
    """Whether an interface's address is reached over TLS; only loopback may be without."""
    parts = urlsplit(url if "://" in url else f"//{url}")
    return parts.scheme in ("https", "grpcs") or not is_loopback(parts.hostname or "")


async def _fetched(settings: A2aSettings, headers: dict[str, str], agent: str) -> bytes:
    url = settings.card
    if not urlsplit(url).path.endswith(".json"):
        url = url.rstrip("/") + AGENT_CARD_WELL_KNOWN_PATH
    try:
        async with http_client(max_response_bytes=MAX_CARD_BYTES, ca_file=settings.ca_file) as client:
            return (await fetch(client, url, headers)).content
    except RedirectedAway as error:
        raise AgentIncompatible(f"the card of {agent} is elsewhere: {said(error)}", agent=agent) from error
    except ResponseTooLarge as error:
        raise AgentIncompatible(
            f"the card of {agent} is larger than {MAX_CARD_BYTES} bytes", agent=agent
        ) from error
    except (httpx.HTTPError, OSError) as error:
        raise AgentUnreachable(f"the card of {agent} cannot be had: {said(error)}", agent=agent) from error


def _faults(card: AgentCard, settings: A2aSettings, sha256: str) -> list[str]:
    faults = [f"it has no {field}" for field in ("name", "version") if not getattr(card, field)]
    if settings.card_sha256 not in (None, sha256):
        faults.append(f"its SHA-256 is {sha256}, {settings.card_sha256} is asked for")
    if settings.skill not in (skills := [skill.id for skill in card.skills]):
        faults.append(
            f"it has no skill {settings.skill!r}; it has {', '.join(map(said, skills[:_MAX_SHOWN])) or 'none'}"
        )
    required = [said(extension.uri) for extension in card.capabilities.extensions if extension.required]
    if required:
        faults.append(f"it requires extensions: {', '.join(required)}")
    return faults


def _chosen(card: AgentCard, settings: A2aSettings) -> AgentInterface | None:
    wanted = set(_BINDINGS.values()) if settings.binding == "auto" else {_BINDINGS[settings.binding]}
    for way in card.supported_interfaces:
        if way.protocol_binding in wanted and _SPOKEN.match(way.protocol_version):
            chosen = AgentInterface()
            chosen.CopyFrom(way)
            return chosen
    return None


def _unsafe(interface: AgentInterface, settings: A2aSettings) -> str:
    """Why an interface must not be spoken to: a card may lead anywhere, and our token would go there."""
    url = interface.url if "://" in interface.url else f"//{interface.url}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"its address {said(interface.url)} is not one"
    home = urlsplit(settings.card).hostname or ""
    if not host or (interface.protocol_binding == _BINDINGS["grpc"] and port is None):
        return f"its address {said(interface.url)} is not one"
    if host not in (home, *settings.hosts) and not (is_loopback(host) and is_loopback(home)):
        return f"it leads to another host, {said(host)}; name it in `hosts` if that is meant"
    if parts.scheme in ("http", "grpc") and not is_loopback(host):
        return f"{said(host)} is not on this machine, so it is only spoken to with TLS"
    return ""

"""Which addresses agents may be spoken to at: the operator's list, and what is refused whatever the list says.

Whoever registers an agent chooses an address that this server then calls from inside its own network: the
metadata service of a cloud, a database without a password. Names are checked when a manifest is read, and what
they lead to each time before it is connected to.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from grpc import StatusCode

from podium.errors import AgentError, AgentUnreachable
from podium.link import is_loopback

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}
_MAX_ENTRIES = 1_000


class AgentAddressRefused(AgentError):
    """An agent's address leads where this server does not connect to on an agent's behalf."""

    code = "AGENT_ADDRESS_REFUSED"
    status = StatusCode.PERMISSION_DENIED
    advice = "Name the host with the setting agent_hosts if that is meant, or mend the address in the manifest."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One entry of the list."""

    name: str = ""
    """A host name; `*.x` for all below x; `*` for every host."""
    network: IpNetwork | None = None
    port: int | None = None

    @property
    def exact(self) -> bool:
        """Whether it says which host, so that what that name leads to is the operator's own word."""
        return self.network is None and not self.name.startswith("*")

    def names(self, host: str, port: int | None) -> bool:
        """Whether it lets this host, as a manifest writes it, be spoken to."""
        if self.port is not None and port != self.port:
            return False
        if self.network is not None:
            address = _address(host)
            return address is not None and self.covers(address)
        if self.name == "*":
            return True
        return host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name

    def covers(self, address: IpAddress) -> bool:
        """Whether it names the network of this address."""
        return self.network is not None and address in self.network


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHosts:
    """The operator's list."""

    entries: tuple[_Entry, ...] = ()
    loopback: bool = False
    """This machine is allowed without being listed."""

    @classmethod
    def parse(cls, listed: Iterable[str], *, loopback: bool = False) -> "AllowedHosts":
        """Read a list.

        Args:
            listed: each `HOST`, `*.DOMAIN`, `*`, an address or a network (`10.1.0.0/16`), with or without `:PORT`;
                IPv6 in brackets.
            loopback: whether this machine is allowed anyhow.

        Raises:
            ValueError: an entry is none of these.
        """
        entries = tuple(map(_entry, listed))
        if len(entries) > _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES} hosts")
        return cls(entries=entries, loopback=loopback)

    @property
    def everywhere(self) -> bool:
        """Whether every host is listed."""
        return any(entry.name == "*" and entry.port is None for entry in self.entries)

    def allows(self, host: str, port: int | None) -> bool:
        """Whether a registered manifest may name this host."""
        host = _plain(host)
        address = _address(host)
        if address is not None and _never(address):
            return False
        if self.loopback and is_loopback(host):
            return True
        return any(entry.names(host, port) for entry in self.entries)

    def refusal(self, place: str) -> str:
        """Why a registered manifest may not name an address, a URL or HOST:PORT; empty when it may."""
        try:
            host, port = host_and_port(place)
        except ValueError as error:
            return f"{place[:100]} is not an address: {error}"
        if self.allows(host, port):
            return ""
        address = _address(_plain(host))
        if address is not None and _never(address):
            return f"{host} is link-local, multicast or no address of a host, which agents are never reached at"
        where = host if port is None else f"{host}:{port}"
        return f"{where} is not among the hosts that the operator allows with the setting `agent_hosts`"

    def leads_out(self, home: str, place: str) -> bool:
        """Whether an agent whose own address is on the list sends us to one that is not."""
        return not self.refusal(home) and bool(self.refusal(place))

    def address_refusal(self, host: str, port: int | None, address: IpAddress) -> str:
        """Why what a host leads to must not be connected to; empty when it may be.

        A host that the list names, or that came with a pack, may be in a private network: that is somebody's word.
        One that is allowed by `*` may not, unless the network is listed too.
        """
        if _never(address):
            return f"{host} leads to {address}, which is link-local, multicast or no address of a host"
        plain = _plain(host)
        matching = [entry for entry in self.entries if entry.names(plain, port)]
        if not matching or any(entry.exact for entry in matching) or _address(plain) is not None:
            return ""
        unwrapped = _unwrapped(address)
        if unwrapped.is_global or any(entry.covers(unwrapped) for entry in self.entries):
            return ""
        if unwrapped.is_loopback and self.loopback:
            return ""
        return f"{host} leads to {address} inside this network, and the setting `agent_hosts` does not name that"

    async def check(self, place: str, *, agent: str) -> None:
        """See where an address leads to, just before it is connected to.

        Args:
            place: a URL, or HOST:PORT.
            agent: whose it is.

        Raises:
            AgentAddressRefused: somewhere that agents are not reached at.
            AgentUnreachable: the name leads nowhere.
        """
        try:
            host, port = host_and_port(place)
        except ValueError as error:
            raise AgentAddressRefused(f"the address of {agent} is none: {error}", agent=agent) from error
        for address in await _resolved(host, agent):
            if why := self.address_refusal(host, port, address):
                raise AgentAddressRefused(f"{agent} is not connected to: {why}", agent=agent)


NONE_LISTED = AllowedHosts()
"""Nothing is listed; what is always refused still is."""


def host_and_port(place: str) -> tuple[str, int | None]:
    """The host and the port of a URL or of HOST:PORT; the scheme's port where none is given.

    Raises:
        ValueError: it has none.
    """
    parts = urlsplit(place if "://" in place else f"//{place}")
    port = parts.port
    if not parts.hostname:
        raise ValueError("it names no host")
    return parts.hostname, _PORTS.get(parts.scheme) if port is None else port


async def _resolved(host: str, agent: str) -> list[IpAddress]:
    literal = _address(_plain(host))
    if literal is not None:
        return [literal]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AgentUnreachable(f"the host {host[:100]} of {agent} is not known: {error}", agent=agent) from error
    # A scope (`%eth0`) belongs to link-local addresses.
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def _entry(text: str) -> _Entry:
    wanted = text.strip().lower()
    if wanted.startswith("["):
        inside, closing, rest = wanted[1:].partition("]")
        if not closing or (rest and not rest.startswith((":", "/"))):
            raise ValueError(f"{text!r} is not a host: the bracket is not closed")
        mask, _, port = rest.partition(":")
        return _Entry(network=ipaddress.ip_network(inside + mask), port=_port(port, text))
    try:
        return _Entry(network=ipaddress.ip_network(wanted))
    except ValueError:
        host, _, port = wanted.partition(":")
    try:
        return _Entry(network=ipaddress.ip_network(host), port=_port(port, text))
    except ValueError:
        if "/" in host or _looks_like_an_address(host):
            raise ValueError(f"{text!r} is not an address or a network") from None
    name = host.removeprefix("*.") if host != "*" else "any"
    if not name or not all(part and part.replace("-", "").replace("_", "").isalnum() for part in name.split(".")):
        raise ValueError(f"{text!r} is not HOST, *.DOMAIN, *, an address or a network, with or without :PORT")
    return _Entry(name=host, port=_port(port, text))


def _port(text: str, entry: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise ValueError(f"{entry!r} has no port that could be")
    return int(text)


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _looks_like_an_address(host: str) -> bool:
    """As the system's resolver would take it, `127.1` and `0x7f000001` among them."""
    return all(part.isdecimal() or part.startswith("0x") for part in host.split("."))


def _address(host: str) -> IpAddress | None:
    try:
        return _unwrapped(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    if not _looks_like_an_address(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _unwrapped(address: IpAddress) -> IpAddress:
    """The IPv4 address inside an IPv6 one that only carries it there."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _TRANSLATED:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


def _never(address: IpAddress) -> bool:
    found = _unwrapped(address)
    return found.is_link_local or found.is_multicast or found.is_unspecified

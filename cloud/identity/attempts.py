"""Slows down who tries enrolment tokens or renewals that are refused, without remembering everybody for ever.

What names a token or a certificate that is on record is counted by that, wherever it comes from; only what names
none is counted by address. Many machines may share an address, and one of them must not keep the others out.
"""

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import unquote

from podium.errors import LimitExceeded

_REMEMBERED = 10_000


class TooManyAttempts(LimitExceeded):
    """A token, a certificate or an address had too many enrolments or renewals refused within a minute."""

    code = "TOO_MANY_ATTEMPTS"
    retryable = True
    advice = "Wait a minute and try again with the right token or certificate."


class AttemptLimiter:
    """Counts refused attempts; a good one costs nothing.

    Tokens have 256 random bits, so nobody finds one by trying: this keeps trying from costing us.
    """

    def __init__(
        self, *, clock_s: Callable[[], float], most: int = 10, within: timedelta = timedelta(minutes=1)
    ) -> None:
        """Allow so many refused attempts with one token or certificate, or from one address.

        Args:
            clock_s: seconds of a clock that only goes on.
            most: refused attempts within the time.
            within: the time.
        """
        self._clock_s = clock_s
        self._most = most
        self._within_s = within.total_seconds()
        self._refused: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, peer: str, known: str = "") -> None:
        """Whether somebody may try.

        Args:
            peer: as gRPC names it, e.g. ``ipv4:192.0.2.7:5000``.
            known: the token or certificate that the attempt names, if there is such a one.

        Raises:
            TooManyAttempts: it may not, for now.
        """
        place = known or place_of(peer)
        refused = self._refused.get(place)
        while refused and refused[0] <= self._clock_s() - self._within_s:
            refused.popleft()
        if refused and len(refused) >= self._most:
            where = f"{'with' if known else 'from'} {place}"
            raise TooManyAttempts(f"{len(refused)} attempts {where} were refused within {self._within_s:g} s")

    def refused(self, peer: str, known: str = "") -> None:
        """Note that an attempt was refused."""
        place = known or place_of(peer)
        self._refused.setdefault(place, deque(maxlen=self._most)).append(self._clock_s())
        self._refused.move_to_end(place)
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)


def place_of(peer: str) -> str:
    """The host of a peer; of IPv6 the network, since everybody has billions of addresses there."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return kind
    host = unquote(rest.rpartition(":")[0]).strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6 and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host

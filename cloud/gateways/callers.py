"""On whose behalf a gateway calls the server: each caller's own token is passed on."""

import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from podium.client import AsyncClient
from podium.errors import PermissionDenied, Unauthenticated
from podium.link import Address

_PREFIX: Final = "bearer "
_MAX_TOKEN_CHARACTERS: Final = 8_192
_KNOWN_FOR_S: Final = 30.0
_MAX_KNOWN: Final = 1_000


@dataclass(slots=True, kw_only=True)
class Callers:
    """Opens clients of the server for whoever calls the gateway."""

    address: Address
    """The server; its token is lent to callers without one, where that is allowed."""
    token_required: bool
    """Every caller brings a token of its own."""
    clock_s: Callable[[], float] = time.monotonic
    _known: dict[str, float] = field(default_factory=dict)

    def address_of(self, authorization: str | None) -> Address:
        """The server's address with the token to send.

        Args:
            authorization: value of the caller's `Authorization` header, or None.

        Raises:
            Unauthenticated: there is no bearer token and one is required, or it is none.
        """
        if authorization is None:
            if self.token_required:
                raise Unauthenticated(
                    "this gateway passes on the caller's own token, and there is none: "
                    "send `Authorization: Bearer TOKEN` with a token of `podium token issue`"
                )
            return self.address
        token = authorization[len(_PREFIX) :].strip()
        if not authorization.lower().startswith(_PREFIX) or not _is_token(token):
            raise Unauthenticated("the Authorization header holds no bearer token")
        return replace(self.address, token=token)

    @asynccontextmanager
    async def client(self, authorization: str | None) -> AsyncIterator[AsyncClient]:
        """A client that acts for the caller; raises as `address_of`."""
        async with AsyncClient(self.address_of(authorization)) as client:
            yield client

    async def check(self, authorization: str | None) -> None:
        """Ask the server whether it knows the caller; a yes holds for half a minute.

        It only makes a bad token known early: the server looks at the token again at every call.

        Raises:
            Unauthenticated: it does not.
        """
        address = self.address_of(authorization)
        key = hashlib.sha256(address.token.encode()).hexdigest()
        if self._known.get(key, float("-inf")) > self.clock_s():
            return
        async with AsyncClient(address) as client:
            # Who is denied this is known all the same.
            with suppress(PermissionDenied):
                await client.list(page_size=1)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = self.clock_s() + _KNOWN_FOR_S


def _is_token(token: str) -> bool:
    return 0 < len(token) <= _MAX_TOKEN_CHARACTERS and all("!" <= character <= "~" for character in token)

"""Who may use a server: its tokens, quotas and live calls, put together from the settings."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cloud.auth.authentication import OPERATOR_SUBJECT, Authentication, no_machines
from cloud.auth.files import write_secret
from cloud.auth.quotas import CallerQuotas, Quotas
from cloud.auth.roles import ADMINISTRATOR
from cloud.auth.tokens import Tokens, other_issuer
from cloud.services.live import LiveCalls
from cloud.settings import Settings
from podium.errors import PodiumError

_LOG = logging.getLogger(__name__)

OPERATOR_FILE = "operator.token"
TOKEN_LIFETIME = timedelta(days=7)
_TOKEN_MADE_ANEW_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What decides who may call, and how much."""

    tokens: Tokens
    authentication: Authentication
    quotas: Quotas
    live: LiveCalls
    token_file: Path | None
    """Where whoever may read the data directory finds an administrator's token; None where none is needed."""

    @classmethod
    def open(
        cls,
        settings: Settings,
        clock: Callable[[], datetime],
        *,
        private_token: str = "",
        check_machine: Callable[[int], None] = no_machines,
    ) -> "Access":
        """Put it together; the data directory is locked.

        Args:
            settings: of the server.
            clock: the present moment in UTC.
            private_token: the only token of a server that one command runs for itself; then no file is written.
            check_machine: raises `Unauthenticated` when the certificate of a serial number is no longer good.

        Raises:
            TokenKeyUnusable, SecretExposed, DataCorrupt: what lies in the data directory is not sound.
            InvalidRequest: the other issuer's keys cannot be used.
        """
        other = None
        if settings.jwt_jwks is not None:
            other = other_issuer(
                settings.jwt_jwks,
                issuer=settings.jwt_issuer,
                audience=settings.jwt_audience,
                roles_claim=settings.jwt_roles_claim,
            )
        tokens = Tokens.open(settings.data, clock=clock, other=other)
        # A command's own server is in clear on loopback too, and still not everybody's on this machine.
        insecure = settings.insecure_loopback and not private_token
        quotas = Quotas(
            CallerQuotas(
                open_tasks=settings.caller_open_tasks,
                submits_per_minute=settings.caller_submits_per_minute,
                streams=settings.caller_streams,
                blob_bytes=settings.caller_daily_blob_bytes,
                unfinished_uploads=settings.caller_unfinished_uploads,
            ),
            monotonic_s=time.monotonic,
        )
        access = cls(
            tokens=tokens,
            authentication=Authentication(
                tokens, check_machine=check_machine, insecure=insecure, private_token=private_token
            ),
            quotas=quotas,
            live=LiveCalls(clock=clock, quotas=quotas),
            token_file=None if insecure or private_token else settings.data / OPERATOR_FILE,
        )
        access.write_token()
        return access

    def write_token(self) -> None:
        """Make the operator's token anew."""
        if self.token_file is not None:
            token, _ = self.tokens.issue(OPERATOR_SUBJECT, [ADMINISTRATOR], lifetime=TOKEN_LIFETIME)
            write_secret(self.token_file, token.encode() + b"\n")

    async def keep(self) -> None:
        """End calls whose credentials expire, and keep the operator's token fresh, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.live.end_expired_for_ever())
            group.create_task(self._keep_token())

    async def _keep_token(self) -> None:
        while True:
            await asyncio.sleep(_TOKEN_MADE_ANEW_EVERY.total_seconds())
            try:
                self.write_token()
            except PodiumError as error:
                # The one there is stays good for days; the next try is tomorrow.
                _LOG.error("the operator's token was not made anew: %s", error.code)

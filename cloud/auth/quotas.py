"""How much one caller may ask for, so that nobody takes the whole server."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from cloud.auth.principal import Principal
from podium.errors import LimitExceeded

_REMEMBERED_CALLERS = 10_000
# Told with a refusal: the same call may be let in later, so that a device does not give its document up.
_STREAM_MAY_END_WITHIN = timedelta(seconds=10)
_UPLOADS_AGE_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerQuotas:
    """What one caller may have; 0 sets no limit."""

    open_tasks: int = 0
    submits_per_minute: int = 0
    streams: int = 0
    """Streams open at once: watches, uploads, downloads."""
    blob_bytes: int = 0
    """Stored bytes that one caller uploaded."""
    unfinished_uploads: int = 0
    """Uploads that run, or broke off and wait to be gone on with."""


class Quotas:
    """Counts against the quotas. Whoever is local (a server without credentials) has none.

    Devices have only the quotas of streams and bytes: an observation that is refused would be lost, and what a
    device may flood its server with is bounded by acknowledgements and by its turn among the callers.
    """

    def __init__(self, quotas: CallerQuotas, *, monotonic_s: Callable[[], float]) -> None:
        """Start with every caller's quota unused.

        Args:
            quotas: what one caller may have.
            monotonic_s: seconds that never go back.
        """
        self._quotas = quotas
        self._monotonic_s = monotonic_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Caller to the submits left and the moment they were counted; the least recent first."""

    def open_limit(self, principal: Principal) -> int | None:
        """How many open tasks a caller may have; None for any number."""
        return None if principal.kind == "local" or not self._quotas.open_tasks else self._quotas.open_tasks

    def count_submit(self, principal: Principal) -> None:
        """Count a submission (a token bucket that fills evenly).

        Raises:
            LimitExceeded: too many within a minute; says after which time the next one is taken.
        """
        allowed = self._quotas.submits_per_minute
        if principal.kind == "local" or not allowed:
            return
        now_s = self._monotonic_s()
        left, counted_s = self._buckets.pop(principal.caller, (float(allowed), now_s))
        left = min(allowed, left + (now_s - counted_s) * allowed / 60)
        refused = left < 1
        self._buckets[principal.caller] = (left if refused else left - 1, now_s)
        if len(self._buckets) > _REMEMBERED_CALLERS:
            self._buckets.popitem(last=False)
        if refused:
            wait = timedelta(seconds=(1 - left) * 60 / allowed)
            raise LimitExceeded(
                f"{principal.caller} may submit {allowed} tasks a minute (quota caller_submits_per_minute)",
                next_step=f"Submit again after {wait.total_seconds():.1f} s, with the same request_id.",
                retry_after=wait,
            )

    def check_streams(self, principal: Principal, open_streams: int) -> None:
        """Let one more stream of a caller begin or not.

        Raises:
            LimitExceeded: the caller has as many open as allowed.
        """
        allowed = self._quotas.streams
        if principal.kind != "local" and allowed and open_streams >= allowed:
            raise LimitExceeded(
                f"{principal.caller} has {open_streams} streams open, as many as the quota caller_streams allows",
                next_step="End some of them; the operator sets the quota.",
                retry_after=_STREAM_MAY_END_WITHIN,
            )

    def check_blob_bytes(self, principal: Principal, stored_bytes: int, new_bytes: int) -> None:
        """Let a caller store more or not.

        Args:
            principal: the caller.
            stored_bytes: what it has stored in the last day.
            new_bytes: what it is about to store.

        Raises:
            LimitExceeded: it would be more than allowed.
        """
        allowed = self._quotas.blob_bytes
        if principal.kind != "local" and allowed and stored_bytes + new_bytes > allowed:
            raise LimitExceeded(
                f"{principal.caller} stored {stored_bytes} bytes within a day and would store {new_bytes} more;"
                f" the quota caller_daily_blob_bytes allows {allowed}",
                next_step="Send it later, when older uploads are a day old; the operator sets the quota.",
                retry_after=_UPLOADS_AGE_WITHIN,
            )

    def check_unfinished_uploads(self, principal: Principal, unfinished: int) -> None:
        """Let one more upload of a caller begin or not.

        Raises:
            LimitExceeded: the caller has as many unfinished ones as allowed.
        """
        allowed = self._quotas.unfinished_uploads
        if principal.kind != "local" and allowed and unfinished >= allowed:
            raise LimitExceeded(
                f"{principal.caller} has {unfinished} unfinished uploads, as many as the quota"
                " caller_unfinished_uploads allows",
                next_step="Finish some of them; those that nobody goes on with are removed after a day.",
                retry_after=_STREAM_MAY_END_WITHIN,
            )

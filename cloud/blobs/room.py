"""How much room there is: of everybody's together, of one caller, and of the one blob."""

from dataclasses import dataclass
from datetime import timedelta

from cloud.auth.principal import Principal
from cloud.auth.quotas import CallerQuotas, Quotas
from cloud.blobs.files import uploader_of
from podium.errors import InvalidRequest, LimitExceeded

_BLOBS_GO_WITHIN = timedelta(minutes=10)
"""Told with a refusal: there may be room later, so that a device does not give its document up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobLimits:
    """What senders may store."""

    blob_bytes: int
    """Of one blob."""
    all_bytes: int
    """Of all blobs together, unfinished ones counted at their full size."""


def no_quotas() -> Quotas:
    """For stores that no caller reaches."""
    return Quotas(CallerQuotas(), monotonic_s=lambda: 0.0)


class Room:
    """Counts bytes against limits and quotas; used under the store's lock."""

    def __init__(self, limits: BlobLimits, quotas: Quotas) -> None:
        self._limits = limits
        self._quotas = quotas
        self.stored_bytes = 0
        """Of whole blobs."""
        self.reserved: dict[str, int] = {}
        """Bytes that unfinished uploads have or may still fill, by the name of their file."""

    def check_size(self, size_bytes: int) -> None:
        """Let only blobs in that are neither empty nor too large.

        Raises:
            InvalidRequest: it is empty.
            LimitExceeded: it is too large.
        """
        if size_bytes == 0:
            raise InvalidRequest("an empty file cannot be stored", field="blob.size_bytes")
        if size_bytes > self._limits.blob_bytes:
            raise LimitExceeded(
                f"{size_bytes} bytes are more than the {self._limits.blob_bytes} a blob may have (blob_max_bytes)",
                next_step="Send a smaller file, or ask the operator to raise blob_max_bytes.",
                field="blob.size_bytes",
            )

    def check_share(self, principal: Principal, stored_bytes: int, size_bytes: int) -> None:
        """Let a caller own one more blob that is stored already, or not.

        Raises:
            LimitExceeded: it would have stored too much today.
        """
        used_bytes = stored_bytes + sum(self._under_way(principal, but="").values())
        self._quotas.check_blob_bytes(principal, used_bytes, size_bytes)

    def check_upload(self, name: str, principal: Principal, stored_bytes: int, size_bytes: int) -> None:
        """Let an upload begin or go on, or not.

        Args:
            name: of its file.
            principal: whose it is.
            stored_bytes: what they stored in the last day.
            size_bytes: of the blob.

        Raises:
            LimitExceeded: they have too many or too large ones, or all blobs together are too large.
        """
        mine = self._under_way(principal, but=name)
        self._quotas.check_unfinished_uploads(principal, len(mine))
        self._quotas.check_blob_bytes(principal, stored_bytes + sum(mine.values()), size_bytes)
        others = sum(size for other, size in self.reserved.items() if other != name)
        if self.stored_bytes + others + size_bytes > self._limits.all_bytes:
            raise LimitExceeded(
                f"all blobs together may have {self._limits.all_bytes} bytes (blobs_max_bytes);"
                f" {size_bytes} more do not fit",
                next_step="Ask the operator to remove old blobs (`podium blobs gc`) or to raise blobs_max_bytes.",
                field="blob.size_bytes",
                retry_after=_BLOBS_GO_WITHIN,
            )

    def _under_way(self, principal: Principal, *, but: str) -> dict[str, int]:
        uploader = uploader_of(principal.caller)
        return {name: size for name, size in self.reserved.items() if name != but and name.endswith(uploader)}

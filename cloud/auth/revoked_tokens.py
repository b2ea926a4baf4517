"""Whose tokens were taken back; kept in one small file of the data directory.

Every time a caller's tokens are taken back its epoch changes. Tokens of ours name the epoch they were issued in,
so that no clock decides: one that was years off at that moment would give back later what was taken. The other
issuer's tokens know no epoch; of them the moment decides.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cloud.auth.files import read_secret, write_secret
from podium.errors import DataCorrupt

FILE = "revoked-tokens.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakenBack:
    until: datetime
    epoch: str


class RevokedTokens:
    """By caller: the moment up to which tokens are refused, and the epoch that good ones name."""

    def __init__(self, path: Path, callers: dict[str, _TakenBack]) -> None:
        """Use `open`."""
        self._path = path
        self._callers = callers

    @classmethod
    def open(cls, data: Path) -> "RevokedTokens":
        """Those of a data directory, which the caller has locked.

        Raises:
            DataCorrupt: the file is damaged. Nothing is served then: a revocation must not be forgotten.
            SecretExposed: others than its owner may write it.
            StorageFull, InternalError: it is not there and cannot be made.
        """
        path = data / FILE
        content = read_secret(path)
        if content is None:
            # From the start on, so that one that goes missing is missed (cloud.contents).
            write_secret(path, b"{}")
        try:
            entries = json.loads(content) if content is not None else {}
            callers = {str(caller): _taken_back(entry) for caller, entry in entries.items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataCorrupt(
                f"{path} is damaged: {error}",
                next_step="Restore it from a backup, or put {} in its place and revoke again.",
            ) from error
        return cls(path, callers)

    def add(self, caller: str, moment: datetime) -> None:
        """Take back what was issued up to now; on disk when this returns."""
        before = self._callers.get(caller)
        until = moment if before is None else max(moment, before.until)
        callers = self._callers | {caller: _TakenBack(until=until, epoch=secrets.token_hex(8))}
        entries = {name: {"until": of.until.isoformat(), "epoch": of.epoch} for name, of in callers.items()}
        write_secret(self._path, json.dumps(entries).encode())
        self._callers = callers

    def epoch(self, caller: str) -> str:
        """What tokens that are issued to a caller now must name; empty while none were taken back."""
        known = self._callers.get(caller)
        return "" if known is None else known.epoch

    def covers(self, caller: str, issued: datetime | None) -> bool:
        """Whether the other issuer's token of that moment was taken back, or one without a moment, if any was."""
        known = self._callers.get(caller)
        return known is not None and (issued is None or issued <= known.until)


def _taken_back(entry: dict[str, Any]) -> _TakenBack:
    until = datetime.fromisoformat(entry["until"])
    if until.tzinfo is None:
        raise ValueError("a moment without time zone")
    if not isinstance(entry["epoch"], str):
        raise TypeError("an epoch that is no text")
    return _TakenBack(until=until, epoch=entry["epoch"])

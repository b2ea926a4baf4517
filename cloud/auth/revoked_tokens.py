"""Whose tokens were taken back, and up to which moment; kept in one small file of the data directory."""

import json
from datetime import datetime
from pathlib import Path

from cloud.auth.files import read_secret, write_secret
from podium.errors import DataCorrupt

FILE = "revoked-tokens.json"


class RevokedTokens:
    """By caller: tokens issued at or before the moment are refused."""

    def __init__(self, path: Path, moments: dict[str, datetime]) -> None:
        """Use `open`."""
        self._path = path
        self._moments = moments

    @classmethod
    def open(cls, data: Path) -> "RevokedTokens":
        """Those of a data directory, which the caller has locked.

        Raises:
            DataCorrupt: the file is damaged. Nothing is served then: a revocation must not be forgotten.
            SecretExposed: others than its owner may write it.
        """
        path = data / FILE
        content = read_secret(path)
        try:
            entries = json.loads(content) if content is not None else {}
            moments = {str(caller): datetime.fromisoformat(moment) for caller, moment in entries.items()}
            if any(moment.tzinfo is None for moment in moments.values()):
                raise ValueError("a moment without time zone")
        except (ValueError, TypeError, AttributeError) as error:
            raise DataCorrupt(
                f"{path} is damaged: {error}", next_step="Restore it from a backup, or remove it and revoke again."
            ) from error
        return cls(path, moments)

    def add(self, caller: str, moment: datetime) -> None:
        """Take back what was issued up to a moment; on disk when this returns."""
        moments = self._moments | {caller: max(moment, self._moments.get(caller, moment))}
        write_secret(
            self._path, json.dumps({name: moment.isoformat() for name, moment in moments.items()}).encode()
        )
        self._moments = moments

    def covers(self, caller: str, issued: datetime | None) -> bool:
        """Whether a caller's token of that moment was taken back; one that does not say its moment was, if any."""
        until = self._moments.get(caller)
        return until is not None and (issued is None or issued <= until)

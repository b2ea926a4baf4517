"""Every move of a current version, and every trust in a key, in the audit ledger too.

Commands work on the registry directly, also while no server runs, and only one process may write the ledger. So
the server copies what is not there yet; what it copied before is found by its key and not written again.
"""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta

from agents.audit import AuditEntry, AuditLog
from podium.errors import PodiumError
from tools.artefacts.records import Change
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.trust import TrustedKey

_LOG = logging.getLogger(__name__)
_EVERY = timedelta(seconds=2)


class ArtefactAudit:
    """Copies the registry's history into the audit log."""

    def __init__(self, registry: ArtefactRegistry, audit_log: AuditLog) -> None:
        """Nothing is copied yet.

        Args:
            registry: whose history.
            audit_log: where it goes.
        """
        self._registry = registry
        self._audit_log = audit_log
        self._copied = 0
        self._copied_of_keys: dict[str, int] = {}
        self._closing = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def copy_new(self) -> None:
        """Copy what happened since the last time; blocks for the disk.

        Raises:
            PodiumError: the registry or the ledger cannot be used now; the rest is copied the next time.
        """
        for change in self._registry.changes(after=self._copied):
            self._audit_log.append(_of_change(change))
            self._copied = change.sequence
        for key in self._registry.keys.all():
            done = self._copied_of_keys.get(key.key_id, 0)
            for number in range(done, len(key.history)):
                self._audit_log.append(_of_key(key, number))
                self._copied_of_keys[key.key_id] = number + 1

    def start(self, *, every: timedelta = _EVERY) -> None:
        """Copy now and then until `close`; what could not be copied is tried again.

        Args:
            every: how soon.
        """
        self._following = asyncio.create_task(self._follow(every.total_seconds()))

    async def close(self) -> None:
        """Copy a last time and stop."""
        self._closing.set()
        if self._following is not None:
            await self._following

    async def _follow(self, every_s: float) -> None:
        closing = False
        while not closing:
            closing = self._closing.is_set()
            try:
                await asyncio.to_thread(self.copy_new)
            except PodiumError as error:
                _LOG.warning("the history of artefacts could not be copied into the audit ledger: %s", error.code)
            if not closing:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), every_s)


def _of_change(change: Change) -> AuditEntry:
    return AuditEntry(
        key=f"artefact/{change.sequence}",
        at=change.at,
        task_id="",
        caller=change.by,
        action=f"artefact.{change.action}",
        details={
            "name": str(change.name),
            "from": change.from_version,
            "to": change.to_version,
            "why": change.why,
        },
    )


def _of_key(key: TrustedKey, number: int) -> AuditEntry:
    item = key.history[number]
    return AuditEntry(
        key=f"artefact-key/{key.key_id}/{number}",
        at=datetime.fromisoformat(item["at"]),
        task_id="",
        caller=item["by"],
        action=f"artefact.{item['action']}",
        details={"key_id": key.key_id, "label": key.label, "why": item["why"]},
    )

"""Agents that were registered while the server ran, and how all agents are switched and weighted: on disk.

A change is tried on a copy of the registry, written to disk with its entry in the audit log, and only then seen by
anybody. What no longer loads at a start (a module that is no longer allowed, a schema that a newer Podium refuses)
is left out and told; the rest serves.
"""

import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.audit import AuditEntry, AuditLog
from agents.canonical import canonical_json, sha256_of
from agents.foreign_code import ForeignPolicy, refusals
from agents.registry import AgentRegistry, RegisteredAgent, Registration
from agents.spec import ManifestInvalid, read_spec
from cloud.bus.schema import opened, podium_error
from podium.errors import Conflict, DataCorrupt, PodiumError

REGISTRATIONS = "registrations.sqlite"
"""Name of the file in the data directory."""
_LOG = logging.getLogger(__name__)
_TABLES = """
CREATE TABLE IF NOT EXISTS registrations (
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  manifest TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  registered_by TEXT NOT NULL,
  registered_at TEXT NOT NULL,
  PRIMARY KEY (name, version)
) STRICT;
CREATE TABLE IF NOT EXISTS states (
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  weight INTEGER,
  changed_by TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  PRIMARY KEY (name, version)
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A registered version that was not loaded at the start, and so does not serve."""

    name: str
    version: str
    manifest_sha256: str
    reason: str


class Registrations:
    """One file, and the registry that it is loaded into. Its calls block; safe to share between threads."""

    def __init__(
        self,
        path: Path,
        registry: AgentRegistry,
        audit_log: AuditLog,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        """Open the file, making it when it is not there.

        Args:
            path: the file; its folder must exist.
            registry: the agents that came with the server; registered ones join them.
            audit_log: every change is recorded there.
            clock: the present moment in UTC.
            new_id: an identifier that was never given before, for entries of the audit log.

        Raises:
            DatabaseCorrupt: the file is damaged.
            InternalError: it cannot be used.
        """
        self._path = path
        self._registry = registry
        self._audit_log = audit_log
        self._clock = clock
        self._new_id = new_id
        self._lock = threading.Lock()
        self.left_out: tuple[LeftOut, ...] = ()
        """What `load` could not load."""
        self._connection = opened(path)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")  # a change is on disk before it is seen
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            self._connection.close()
            raise podium_error(error, path) from error

    def load(self, policy: ForeignPolicy) -> tuple[str, ...]:
        """Put what was registered into the registry, and switch and weigh agents as they were.

        Args:
            policy: what agents may name of this machine, by the settings of now.

        Returns:
            What was left out and why, in words.
        """
        left_out: list[LeftOut] = []
        with self._lock, self._typed_errors():
            rows = self._connection.execute(
                "SELECT name, version, manifest, sha256, registered_by, registered_at FROM registrations"
            ).fetchall()
            states = self._connection.execute("SELECT name, version, enabled, weight FROM states").fetchall()
        for name, version, manifest, sha256, by, at in rows:
            try:
                registration = Registration(by=by, at=datetime.fromisoformat(at))
                self._registry.add(_revived((name, version), manifest, sha256, registration, policy))
            except (PodiumError, ValueError, RecursionError) as error:
                left_out.append(LeftOut(name=name, version=version, manifest_sha256=sha256, reason=str(error)))
                code = error.code if isinstance(error, PodiumError) else type(error).__name__
                _LOG.warning("agent %s %s (%s) was registered and is left out: %s", name, version, sha256, code)
        self.left_out = tuple(left_out)
        self._restore(states)
        return tuple(f"agent {one.name} {one.version} was left out: {one.reason}" for one in left_out)

    def register(self, agent: RegisteredAgent, *, by: str) -> RegisteredAgent:
        """Keep an agent that was looked over and tried; as it then stands in the registry.

        Args:
            agent: the agent.
            by: who registers it.

        Raises:
            Conflict: this version of it is registered already, also where it was left out at the start.
            StorageFull: there is no room; nothing was changed.
        """
        spec, now = agent.spec, self._clock()
        if any((one.name, one.version) == (spec.name, spec.version) for one in self.left_out):
            raise Conflict(
                f"agent {spec.name} {spec.version} is registered already, and was left out at the start",
                next_step="Give it another version; `podium agents list` says why that one was left out.",
                agent=spec.name,
            )
        registered = RegisteredAgent(
            spec=spec,
            contract=agent.contract,
            manifest_sha256=agent.manifest_sha256,
            registration=Registration(by=by, at=now),
        )
        details = {"engine": spec.engine, "manifest_sha256": agent.manifest_sha256, "version": spec.version}
        manifest = canonical_json(spec.manifest()).decode("utf-8")
        row = (spec.name, spec.version, manifest, agent.manifest_sha256, by, now.isoformat())
        with self._change(spec.name, "agent.register", details, by) as change:
            change(lambda registry: registry.add(registered))
            self._connection.execute("INSERT INTO registrations VALUES (?, ?, ?, ?, ?, ?)", row)
        return self._registry.get(spec.name, spec.version)

    def set_enabled(self, name: str, version: str, enabled: bool, *, by: str) -> tuple[RegisteredAgent, ...]:
        """Take an agent out of service or back in; every version of it as it then stands.

        Args:
            name: the agent.
            version: only this one; all when empty.
            enabled: whether it serves.
            by: who wants it so.

        Raises:
            NotFound: there is no such agent or version.
            StorageFull: there is no room; nothing was changed.
        """
        action = "agent.enable" if enabled else "agent.disable"
        with self._change(name, action, {"version": version}, by) as change:
            change(lambda registry: registry.set_enabled(name, enabled, version=version))
        return self._registry.versions(name)

    def set_weights(self, name: str, weights: Mapping[str, int], *, by: str) -> tuple[RegisteredAgent, ...]:
        """Share the calls of a name among its versions; every version as it then stands.

        Args:
            name: the agent.
            weights: by version; those that are not listed get none.
            by: who wants it so.

        Raises:
            NotFound: there is no such agent or version.
            InvalidRequest: a weight is out of range, or none is above 0.
            StorageFull: there is no room; nothing was changed.
        """
        with self._change(name, "agent.weights", {"weights": dict(weights)}, by) as change:
            change(lambda registry: registry.set_weights(name, weights))
        return self._registry.versions(name)

    def record_refusal(self, name: str, error: PodiumError, *, by: str) -> None:
        """Put on record that an agent was not taken in.

        Args:
            name: the agent, as far as it said.
            error: why.
            by: who wanted to register it.
        """
        details = {
            "agent": name[:100],
            "code": error.code,
            "reasons": [line[:200] for line in error.evidence[:20]],
        }
        self._record("agent.register.refused", details, by)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _change(
        self, name: str, action: str, details: Mapping[str, Any], by: str
    ) -> Iterator[Callable[[Callable[[AgentRegistry], object]], None]]:
        """One change: tried on a copy, written with its audit entry, and then made. All or nothing."""
        made: list[Callable[[AgentRegistry], object]] = []
        with self._lock, self._typed_errors():
            draft = self._registry.copy()

            def apply(change: Callable[[AgentRegistry], object]) -> None:
                change(draft)
                made.append(change)

            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield apply
                self._write_states(name, draft, by)
                # Before the commit: what nobody could record must not happen.
                self._record(action, {"agent": name, **details}, by)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            for change in made:
                change(self._registry)

    def _write_states(self, name: str, draft: AgentRegistry, by: str) -> None:
        now, weighted = self._clock().isoformat(), draft.has_weights(name)
        self._connection.executemany(
            "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)",
            [
                (name, agent.spec.version, int(agent.enabled), agent.weight if weighted else None, by, now)
                for agent in draft.versions(name)
            ],
        )

    def _restore(self, states: list[tuple[str, str, int, int | None]]) -> None:
        weights: dict[str, dict[str, int]] = {}
        for name, version, enabled, weight in states:
            if self._registry.exactly(name, version) is None:
                continue  # it came with an older server, or was left out
            self._registry.set_enabled(name, bool(enabled), version=version)
            if weight is not None:
                weights.setdefault(name, {})[version] = weight
        for name, shares in weights.items():
            if any(shares.values()):
                self._registry.set_weights(name, shares)

    def _record(self, action: str, details: Mapping[str, Any], by: str) -> None:
        entry = AuditEntry(
            key=f"registry/{self._new_id()}",
            at=self._clock(),
            task_id="",
            caller=by,
            action=action,
            details=details,
        )
        self._audit_log.append(entry)

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise podium_error(error, self._path) from error


def _revived(
    key: tuple[str, str], manifest: str, sha256: str, registration: Registration, policy: ForeignPolicy
) -> RegisteredAgent:
    named = f"agent {' '.join(key)}"
    raw = json.loads(manifest)
    spec = read_spec(raw, named=named)
    if sha256_of(raw) != sha256 or (spec.name, spec.version) != key:
        raise DataCorrupt(f"the manifest of {named} on disk is not the one that was registered")
    if refused := list(refusals(spec, policy)):
        raise ManifestInvalid(
            f"{named} is no longer allowed: {refused[0].message}", evidence=[item.message for item in refused]
        )
    return RegisteredAgent.of(spec, registration=registration)

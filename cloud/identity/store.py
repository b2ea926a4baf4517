"""Machines, their certificates and enrolment tokens on SQLite; what belongs together is one transaction."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloud.bus.schema import DatabaseCorrupt, opened, podium_error
from cloud.identity.records import CertificateState, IssuedCertificate, MachineRecord, TokenRecord

_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
  token_id TEXT PRIMARY KEY,
  secret_sha256 BLOB NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  create_time REAL NOT NULL,
  expire_time REAL NOT NULL,
  max_uses INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0 CHECK (uses <= max_uses),
  created_by TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS token_uses (
  token_id TEXT NOT NULL REFERENCES tokens,
  key_sha256 BLOB NOT NULL,
  serial TEXT NOT NULL,
  PRIMARY KEY (token_id, key_sha256)
) STRICT;
CREATE TABLE IF NOT EXISTS token_hosts (
  token_id TEXT NOT NULL REFERENCES tokens,
  host_name TEXT NOT NULL,
  PRIMARY KEY (token_id, host_name)
) STRICT;
CREATE TABLE IF NOT EXISTS machines (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  enrol_time REAL NOT NULL,
  revoke_time REAL,
  revoke_reason TEXT NOT NULL DEFAULT '',
  contested_time REAL,
  contested_reason TEXT NOT NULL DEFAULT '',
  last_seen_time REAL,
  PRIMARY KEY (kind, name)
) STRICT;
CREATE TABLE IF NOT EXISTS certificates (
  serial TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  key_sha256 BLOB NOT NULL,
  sha256 BLOB NOT NULL,
  pem BLOB NOT NULL,
  issue_time REAL NOT NULL,
  expire_time REAL NOT NULL,
  state TEXT NOT NULL,
  change_time REAL NOT NULL,
  FOREIGN KEY (kind, name) REFERENCES machines
) STRICT;
CREATE INDEX IF NOT EXISTS certificates_of ON certificates (kind, name, issue_time);
"""
_COLUMNS = "serial, kind, name, key_sha256, sha256, pem, issue_time, expire_time, state, change_time"


class IdentityStore:
    """One file, DATA/identity.sqlite. Safe to call from several threads; each method is all or nothing."""

    def __init__(self, path: Path) -> None:
        """Open the store, making it when it is not there.

        Raises:
            DatabaseCorrupt: the file is damaged.
            InternalError: it cannot be used.
        """
        self._path = path
        self._lock = threading.RLock()
        self._when_written: list[Callable[[], None]] = []
        self._connection = opened(path)
        try:
            path.chmod(0o600)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")  # a revocation is on disk when it is told
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            self._connection.close()
            raise podium_error(error, path) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside happens or nothing does, alone; one inside another is part of it.

        Raises:
            StorageFull, DatabaseCorrupt, InternalError: SQLite failed; nothing was written.
        """
        with self._lock:
            if self._connection.in_transaction:  # under the lock, so it is this thread's
                yield self._connection
                return
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
                for act in self._when_written:
                    act()
            except sqlite3.Error as error:
                raise podium_error(error, self._path) from error
            finally:
                self._when_written.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def when_written(self, act: Callable[[], None]) -> None:
        """Do something once the transaction that this is called in is on disk, and before any other begins.

        When it cannot be written, nothing is done.
        """
        self._when_written.append(act)

    def add_token(self, token: TokenRecord) -> None:
        """Record a token."""
        with self.transaction() as rows:
            rows.execute(
                "INSERT INTO tokens (token_id, secret_sha256, kind, name, create_time, expire_time, max_uses, "
                "created_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    token.token_id,
                    token.secret_sha256,
                    token.kind,
                    token.name,
                    token.create_time.timestamp(),
                    token.expire_time.timestamp(),
                    token.max_uses,
                    token.created_by,
                ),
            )
            rows.executemany(
                "INSERT INTO token_hosts VALUES (?, ?)", [(token.token_id, host) for host in token.host_names]
            )

    def token(self, token_id: str) -> tuple[TokenRecord, int] | None:
        """A token and how often it was used."""
        with self.transaction() as rows:
            row = rows.execute(
                "SELECT token_id, secret_sha256, kind, name, create_time, expire_time, max_uses, created_by, uses "
                "FROM tokens WHERE token_id = ?",
                (token_id,),
            ).fetchone()
            hosts = rows.execute(
                "SELECT host_name FROM token_hosts WHERE token_id = ? ORDER BY rowid", (token_id,)
            ).fetchall()
        if row is None:
            return None
        record = TokenRecord(
            token_id=row[0],
            secret_sha256=row[1],
            kind=row[2],
            name=row[3],
            create_time=_moment(row[4]),
            expire_time=_moment(row[5]),
            max_uses=row[6],
            created_by=row[7],
            host_names=tuple(host for (host,) in hosts),
        )
        return record, row[8]

    def use_token(self, token_id: str, certificate: IssuedCertificate) -> None:
        """Count a use and remember which key got what."""
        with self.transaction() as rows:
            rows.execute("UPDATE tokens SET uses = uses + 1 WHERE token_id = ?", (token_id,))
            rows.execute(
                "INSERT INTO token_uses VALUES (?, ?, ?)",
                (token_id, certificate.key_sha256, format(certificate.serial, "x")),
            )

    def used_for(self, token_id: str, key_sha256: bytes) -> IssuedCertificate | None:
        """The certificate that this key got with this token before."""
        return self._certificate(
            "WHERE serial = (SELECT serial FROM token_uses WHERE token_id = ? AND key_sha256 = ?)",
            token_id,
            key_sha256,
        )

    def certificate(self, serial: int) -> IssuedCertificate | None:
        """A certificate by its serial number."""
        return self._certificate("WHERE serial = ?", format(serial, "x"))

    def certificates(self) -> list[IssuedCertificate]:
        """Every certificate on record."""
        with self.transaction() as rows:
            found = rows.execute(f"SELECT {_COLUMNS} FROM certificates").fetchall()  # noqa: S608 - our columns
        return [_issued(row) for row in found]

    def certificates_of(self, kind: str, name: str) -> list[IssuedCertificate]:
        """Those of one machine, oldest first."""
        with self.transaction() as rows:
            found = rows.execute(
                f"SELECT {_COLUMNS} FROM certificates WHERE kind = ? AND name = ? "  # noqa: S608 - our columns
                "ORDER BY issue_time, rowid",
                (kind, name),
            ).fetchall()
        return [_issued(row) for row in found]

    def add_certificate(self, certificate: IssuedCertificate) -> None:
        """Record a certificate of a machine that is on record."""
        with self.transaction() as rows:
            rows.execute(
                f"INSERT INTO certificates ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (
                    format(certificate.serial, "x"),
                    certificate.kind,
                    certificate.name,
                    certificate.key_sha256,
                    certificate.sha256,
                    certificate.pem,
                    certificate.issue_time.timestamp(),
                    certificate.expire_time.timestamp(),
                    certificate.state,
                    certificate.change_time.timestamp(),
                ),
            )

    def put_machine(self, kind: str, name: str, now: datetime) -> None:
        """Enrol a machine, or enrol it again: what was said against it is over."""
        with self.transaction() as rows:
            rows.execute(
                "INSERT INTO machines (kind, name, enrol_time) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                "revoke_time = NULL, revoke_reason = '', contested_time = NULL, contested_reason = ''",
                (kind, name, now.timestamp()),
            )

    def set_states(self, serials: list[int], state: CertificateState, now: datetime) -> None:
        """Put certificates into a state."""
        with self.transaction() as rows:
            rows.executemany(
                "UPDATE certificates SET state = ?, change_time = ? WHERE serial = ?",
                [(state, now.timestamp(), format(serial, "x")) for serial in serials],
            )

    def revoke_machine(self, kind: str, name: str, reason: str, now: datetime) -> None:
        """Say on a machine's record that it was revoked, and why; the first time counts."""
        with self.transaction() as rows:
            rows.execute(
                "UPDATE machines SET revoke_time = ?, revoke_reason = ? "
                "WHERE kind = ? AND name = ? AND revoke_time IS NULL",
                (now.timestamp(), reason, kind, name),
            )

    def expire_tokens(self, kind: str, name: str, now: datetime) -> None:
        """Let tokens for exactly this machine be good no more."""
        with self.transaction() as rows:
            rows.execute(
                "UPDATE tokens SET expire_time = ? WHERE kind = ? AND name = ? AND expire_time > ?",
                (now.timestamp(), kind, name, now.timestamp()),
            )

    def contest(self, kind: str, name: str, reason: str, now: datetime) -> None:
        """Say on a machine's record that two holders were noticed."""
        with self.transaction() as rows:
            rows.execute(
                "UPDATE machines SET contested_time = ?, contested_reason = ? WHERE kind = ? AND name = ?",
                (now.timestamp(), reason, kind, name),
            )

    def seen(self, kind: str, name: str, now: datetime) -> None:
        """Say on a machine's record when it was last seen."""
        with self.transaction() as rows:
            rows.execute(
                "UPDATE machines SET last_seen_time = ? WHERE kind = ? AND name = ?", (now.timestamp(), kind, name)
            )

    def machines(self, kind: str = "", name: str = "") -> list[MachineRecord]:
        """Machines of a kind (or all), by kind and name, each with its newest certificate."""
        with self.transaction() as rows:
            found = rows.execute(
                "SELECT m.kind, m.name, c.serial, m.enrol_time, c.issue_time, c.expire_time, m.revoke_time, "
                "m.revoke_reason, m.contested_time, m.contested_reason, m.last_seen_time FROM machines m "
                "JOIN certificates c ON c.rowid = (SELECT rowid FROM certificates WHERE kind = m.kind AND "
                "name = m.name ORDER BY issue_time DESC, rowid DESC LIMIT 1) "
                "WHERE (? = '' OR m.kind = ?) AND (? = '' OR m.name = ?) ORDER BY m.kind, m.name",
                (kind, kind, name, name),
            ).fetchall()
        return [_machine(row) for row in found]

    def forget_certificates(self, expired_before: datetime) -> int:
        """Drop certificates that were replaced or taken back and expired long ago; how many.

        Those that may be in use stay whatever the clock says: it may be years ahead just now.
        """
        with self.transaction() as rows:
            return rows.execute(
                "DELETE FROM certificates AS old WHERE expire_time < ? AND state IN ('superseded', 'revoked') AND "
                "rowid != (SELECT rowid FROM certificates WHERE kind = old.kind AND name = old.name "
                "ORDER BY issue_time DESC, rowid DESC LIMIT 1)",
                (expired_before.timestamp(),),
            ).rowcount

    def _certificate(self, where: str, *values: object) -> IssuedCertificate | None:
        with self.transaction() as rows:
            row = rows.execute(f"SELECT {_COLUMNS} FROM certificates {where}", values).fetchone()  # noqa: S608
        return _issued(row) if row is not None else None


def _issued(row: tuple[Any, ...]) -> IssuedCertificate:
    with _sound(row):
        return _certificate(row)


def _machine(row: tuple[Any, ...]) -> MachineRecord:
    with _sound(row):
        return _machine_record(row)


@contextmanager
def _sound(row: tuple[Any, ...]) -> Iterator[None]:
    """What is in a row must be what was written: a certificate of no known state must open nothing."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        raise DatabaseCorrupt(f"the record of {row[:3]} in identity.sqlite is damaged: {error}") from error


def _certificate(row: tuple[Any, ...]) -> IssuedCertificate:
    return IssuedCertificate(
        serial=int(row[0], 16),
        kind=row[1],
        name=row[2],
        key_sha256=row[3],
        sha256=row[4],
        pem=row[5],
        issue_time=_moment(row[6]),
        expire_time=_moment(row[7]),
        state=CertificateState(row[8]),
        change_time=_moment(row[9]),
    )


def _machine_record(row: tuple[Any, ...]) -> MachineRecord:
    return MachineRecord(
        kind=row[0],
        name=row[1],
        serial=int(row[2], 16),
        enrol_time=_moment(row[3]),
        issue_time=_moment(row[4]),
        expire_time=_moment(row[5]),
        revoke_time=_moment_or_none(row[6]),
        revoke_reason=row[7],
        contested_time=_moment_or_none(row[8]),
        contested_reason=row[9],
        last_seen_time=_moment_or_none(row[10]),
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


def _moment_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)

"""What the embedded bus does to its file, as functions of a connection inside a transaction.

Each checks before it writes, as `cloud.bus.writer.Writer` demands.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.message import DecodeError

from cloud.bus.lease_clock import LeaseClock
from cloud.bus.schema import EVENTS_PER_TASK, DatabaseCorrupt
from conductor.bus import Acceptance, TaskRow
from podium.errors import LimitExceeded, NotFound, VersionConflict
from podium.v1 import event_pb2, status_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is stored of a task when it is accepted."""

    task_id: str
    caller: str
    request_id: str
    text: str
    device_id: str
    priority: int
    time_us: int
    body: bytes
    """The serialised first event, sequence 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvents:
    """What is stored with an append."""

    task_id: str
    expected_sequence: int
    bodies: tuple[bytes, ...]
    status: int
    time_us: int
    """Time of the last event; 0 when there is none."""


_OPEN = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_open WHERE caller = ? AND status < 6 LIMIT ?)"

# Indexes are named because the planner, which knows nothing of how many tasks stand where, takes worse ones.
# The oldest waiting task of every caller who has one of the highest priority that waits, by leaps through the
# index `tasks_waiting`: what it costs grows with the number of callers who wait, not with that of their tasks.
_NEXT = """
WITH RECURSIVE
top (priority) AS (
  SELECT max(priority) FROM tasks INDEXED BY tasks_waiting WHERE status IN (1, 2) AND lease_until_us = 0
),
waiting (caller) AS (
  SELECT min(caller) FROM tasks INDEXED BY tasks_waiting
  WHERE status IN (1, 2) AND lease_until_us = 0 AND priority = (SELECT priority FROM top)
  UNION ALL
  SELECT (
    SELECT min(caller) FROM tasks INDEXED BY tasks_waiting
    WHERE status IN (1, 2) AND lease_until_us = 0 AND priority = (SELECT priority FROM top)
      AND caller > waiting.caller
  ) FROM waiting WHERE caller IS NOT NULL
),
held (caller, count) AS (
  SELECT caller, count(*) FROM tasks INDEXED BY tasks_held
  WHERE status IN (1, 2) AND lease_until_us > 0 GROUP BY caller
)
SELECT (
  SELECT min(number) FROM tasks INDEXED BY tasks_waiting
  WHERE status IN (1, 2) AND lease_until_us = 0 AND priority = (SELECT priority FROM top)
    AND caller = waiting.caller
) AS first
FROM waiting LEFT JOIN held ON held.caller = waiting.caller
WHERE waiting.caller IS NOT NULL
ORDER BY coalesce(held.count, 0), first LIMIT 1
"""


def accept(connection: sqlite3.Connection, task: NewTask, open_limit: int | None) -> Acceptance:
    """Store a task and its first event unless its caller's request id is known.

    Raises:
        LimitExceeded: the caller has `open_limit` open tasks.
    """
    known = find_request(connection, task.caller, task.request_id)
    if known is not None:
        return Acceptance(task_id=known, duplicate=True)
    caller = _caller(connection, task.caller)
    if caller is not None and open_limit is not None:
        (open_count,) = connection.execute(_OPEN, (caller, open_limit)).fetchone()
        if open_count >= open_limit:
            raise too_many_open(task.caller, open_limit)
    if caller is None:
        caller = connection.execute("INSERT INTO callers (name) VALUES (?)", (task.caller,)).lastrowid
    cursor = connection.execute(
        "INSERT INTO requests (task_id, caller, request_id, text, device_id, create_us) VALUES (?, ?, ?, ?, ?, ?)",
        (task.task_id, caller, task.request_id, task.text, task.device_id, task.time_us),
    )
    number = cursor.lastrowid or 0
    connection.execute(
        "INSERT INTO tasks (number, caller, status, priority, update_us, last_sequence) VALUES (?, ?, ?, ?, ?, 1)",
        (number, caller, status_pb2.TASK_STATUS_ACCEPTED, task.priority, task.time_us),
    )
    connection.execute("INSERT INTO events VALUES (?, ?)", (number * EVENTS_PER_TASK + 1, task.body))
    return Acceptance(task_id=task.task_id, duplicate=False)


def append(connection: sqlite3.Connection, new: NewEvents) -> int:
    """Store events after the expected one and the task's new status; return the last sequence number.

    Raises:
        NotFound: there is no such task.
        VersionConflict: the log does not end where the caller thinks.
        LimitExceeded: the task has no sequence numbers left.
    """
    row = connection.execute(
        "SELECT number, last_sequence, status FROM tasks"
        " WHERE number = (SELECT number FROM requests WHERE task_id = ?)",
        (new.task_id,),
    ).fetchone()
    if row is None:
        raise _no_task(new.task_id)
    number, last, status = row
    if last != new.expected_sequence:
        raise VersionConflict(f"the log of task {new.task_id} ends at {last}, not at {new.expected_sequence}")
    last += len(new.bodies)
    if last >= EVENTS_PER_TASK:
        raise LimitExceeded(f"task {new.task_id} has {EVENTS_PER_TASK - 1} events, the most a task may have")
    first_key = number * EVENTS_PER_TASK + new.expected_sequence + 1
    connection.executemany(
        "INSERT INTO events VALUES (?, ?)", [(first_key + index, body) for index, body in enumerate(new.bodies)]
    )
    connection.execute(
        "UPDATE tasks SET last_sequence = ?, update_us = max(update_us, ?) WHERE number = ?",
        (last, new.time_us, number),
    )
    if status != new.status:  # most appends leave it, and setting it touches four indexes
        connection.execute("UPDATE tasks SET status = ? WHERE number = ?", (new.status, number))
    return int(last)


def read(connection: sqlite3.Connection, task_id: str, after_sequence: int) -> list[event_pb2.Event]:
    """The events of a task after a sequence number, in order.

    Raises:
        NotFound: there is no such task.
        DatabaseCorrupt: a stored event is not one.
    """
    after = min(after_sequence, EVENTS_PER_TASK - 1)  # a larger number would reach into the next task's keys
    rows = connection.execute(
        "SELECT e.body FROM requests r JOIN events e ON e.key > r.number * :room + :after"
        " AND e.key < (r.number + 1) * :room WHERE r.task_id = :task_id ORDER BY e.key",
        {"room": EVENTS_PER_TASK, "after": after, "task_id": task_id},
    ).fetchall()
    if not rows and connection.execute("SELECT 1 FROM requests WHERE task_id = ?", (task_id,)).fetchone() is None:
        raise _no_task(task_id)
    try:
        return [event_pb2.Event.FromString(row[0]) for row in rows]
    except DecodeError as error:
        raise DatabaseCorrupt(f"an event of task {task_id} cannot be read: {error}") from error


def find_request(connection: sqlite3.Connection, caller: str, request_id: str) -> str | None:
    """The task id of a caller's request id, or None."""
    row = connection.execute(
        "SELECT r.task_id FROM callers c JOIN requests r ON r.caller = c.number"
        " WHERE c.name = ? AND r.request_id = ?",
        (caller, request_id),
    ).fetchone()
    return None if row is None else str(row[0])


def caller_of(connection: sqlite3.Connection, task_id: str) -> str:
    """Who handed a task in.

    Raises:
        NotFound: there is no such task.
    """
    row = connection.execute(
        "SELECT c.name FROM requests r JOIN callers c ON c.number = r.caller WHERE r.task_id = ?", (task_id,)
    ).fetchone()
    if row is None:
        raise _no_task(task_id)
    return str(row[0])


def rows(
    connection: sqlite3.Connection, statuses: Sequence[int], caller: str | None, limit: int, before: str
) -> list[TaskRow]:
    """Tasks, newest first.

    Raises:
        NotFound: `before` is not one of the tasks asked for.
    """
    of_caller = None
    if caller is not None:
        of_caller = _caller(connection, caller) or 0  # 0 is nobody's number
    number = 1 << 62
    if before:
        found = connection.execute("SELECT number, caller FROM requests WHERE task_id = ?", (before,)).fetchone()
        if found is None or of_caller not in (None, found[1]):
            raise _no_task(before)
        number = found[0]
    marks = ", ".join("?" * len(statuses))
    chosen = f"AND t.status IN ({marks})" if statuses else ""
    chosen += " AND t.caller = ?" if of_caller is not None else ""
    found_rows = connection.execute(
        "SELECT r.task_id, r.request_id, t.status, r.text, r.create_us, t.update_us, t.last_sequence, r.device_id,"  # noqa: S608 - only question marks are inserted
        " c.name FROM tasks t JOIN requests r USING (number) JOIN callers c ON c.number = t.caller"
        f" WHERE t.number < ? {chosen} ORDER BY t.number DESC LIMIT ?",
        (number, *statuses, *([of_caller] if of_caller is not None else []), limit),
    )
    return [
        TaskRow(
            task_id=row[0],
            request_id=row[1],
            status=row[2],
            text=row[3],
            create_time=_moment(row[4]),
            update_time=_moment(row[5]),
            last_sequence=row[6],
            device_id=row[7],
            caller=row[8],
        )
        for row in found_rows
    ]


def backlog(connection: sqlite3.Connection) -> tuple[int, int | None]:
    """How many runnable tasks nobody holds, and when the oldest of them was taken in, in us since 1970."""
    count, oldest_us = connection.execute(
        "SELECT count(*), min(r.create_us) FROM tasks t INDEXED BY tasks_waiting JOIN requests r USING (number)"
        " WHERE t.status IN (1, 2) AND t.lease_until_us = 0"
    ).fetchone()
    return count, oldest_us


def lease(connection: sqlite3.Connection, clock: LeaseClock, worker_id: str, duration_us: int) -> str | None:
    """Give the runnable task whose turn it is to a worker; the task id, or None."""
    now_us = _now(connection, clock)
    # Seldom any: a holder has died. Its task waits again like every other.
    connection.execute(
        "UPDATE tasks INDEXED BY tasks_held SET lease_until_us = 0"
        " WHERE status IN (1, 2) AND lease_until_us > 0 AND lease_until_us <= ?",
        (now_us,),
    )
    row = connection.execute(_NEXT).fetchone()
    if row is None:
        return None
    _hold(connection, row[0], worker_id, now_us, duration_us)
    return str(connection.execute("SELECT task_id FROM requests WHERE number = ?", row).fetchone()[0])


def renew(
    connection: sqlite3.Connection, clock: LeaseClock, task_id: str, worker_id: str, duration_us: int
) -> None:
    """Hold a task longer; a lease that lapsed is renewed too while nobody else took the task.

    Raises:
        VersionConflict: somebody else holds the task, or it was given back.
    """
    row = connection.execute(
        "SELECT number, lease_worker FROM tasks WHERE number = (SELECT number FROM requests WHERE task_id = ?)",
        (task_id,),
    ).fetchone()
    if row is None or row[1] != worker_id:
        raise VersionConflict(f"worker {worker_id} no longer holds task {task_id}")
    _hold(connection, row[0], worker_id, _now(connection, clock), duration_us)


def release(connection: sqlite3.Connection, task_id: str, worker_id: str) -> bool:
    """Give a task back; True when the worker held it."""
    cursor = connection.execute(
        "UPDATE tasks SET lease_worker = '', lease_until_us = 0"
        " WHERE number = (SELECT number FROM requests WHERE task_id = ?) AND lease_worker = ?",
        (task_id, worker_id),
    )
    return cursor.rowcount > 0


def drop_leases(connection: sqlite3.Connection) -> None:
    """Take every lease away; tasks that have ended keep theirs, which nobody gives back and nobody asks for."""
    connection.execute(
        "UPDATE tasks SET lease_worker = '', lease_until_us = 0"
        " WHERE status NOT IN (6, 7, 8, 9) AND lease_worker <> ''"
    )


def effect(connection: sqlite3.Connection, key: str) -> bytes | None:
    """The recorded output of a write effect, or None."""
    row = connection.execute("SELECT output FROM effects WHERE key = ?", (key,)).fetchone()
    return None if row is None else bytes(row[0])


def record_effect(connection: sqlite3.Connection, key: str, output: bytes) -> bytes:
    """Record an effect's output unless there is one; return what stands."""
    connection.execute("INSERT INTO effects VALUES (?, ?) ON CONFLICT DO NOTHING", (key, output))
    return bytes(connection.execute("SELECT output FROM effects WHERE key = ?", (key,)).fetchone()[0])


def _now(connection: sqlite3.Connection, clock: LeaseClock) -> int:
    stored = connection.execute("SELECT now_us FROM lease_clock").fetchone()[0]
    return clock.read(stored)


def _hold(connection: sqlite3.Connection, number: int, worker_id: str, now_us: int, duration_us: int) -> None:
    connection.execute(
        "UPDATE tasks SET lease_worker = ?, lease_until_us = ? WHERE number = ?",
        (worker_id, now_us + duration_us, number),
    )
    connection.execute("UPDATE lease_clock SET now_us = ?", (now_us,))


def _caller(connection: sqlite3.Connection, name: str) -> int | None:
    row = connection.execute("SELECT number FROM callers WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def _moment(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us / 1_000_000, tz=UTC)


def too_many_open(caller: str, limit: int) -> LimitExceeded:
    """The caller's quota of open tasks is used up."""
    return LimitExceeded(
        f"{caller} has {limit} open tasks, as many as the quota caller_open_tasks allows",
        next_step="Wait until tasks have ended or cancel some; the operator sets the quota.",
    )


def _no_task(task_id: str) -> NotFound:
    return NotFound(f"there is no task {task_id!r}")

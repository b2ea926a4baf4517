"""The event logs of a data directory, read beside a server that may be running on it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from google.protobuf.message import DecodeError

from cloud.bus.schema import EVENTS_PER_TASK, connect, podium_error
from podium.errors import DataCorrupt, InvalidRequest
from podium.v1 import event_pb2

EVENT_LOG = "events.sqlite"


def read_logs(data: Path) -> Iterator[tuple[str, tuple[event_pb2.Event, ...]]]:
    """Every task's id and events, in the order of acceptance; as they stand when the first one is read.

    Raises:
        InvalidRequest: the data directory has no event log.
        DatabaseCorrupt, EventLogTooNew: it cannot be read.
        DataCorrupt: an event is none.
    """
    path = data / EVENT_LOG
    if not path.is_file():
        raise InvalidRequest(
            f"{data} has no event log", next_step="Name the data directory of a server with --data.", field="data"
        )
    with closing(connect(path, read_only=True)) as connection:
        try:
            yield from _tasks(connection)
        except sqlite3.Error as error:
            raise podium_error(error, path) from error


def _tasks(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[event_pb2.Event, ...]]]:
    # One transaction: what a running server appends meanwhile is not half seen.
    connection.execute("BEGIN")
    rows = connection.execute(
        "SELECT r.task_id, e.body FROM events e JOIN requests r ON r.number = e.key / ? ORDER BY e.key",
        (EVENTS_PER_TASK,),
    )
    task_id, events = "", list[event_pb2.Event]()
    for found, body in rows:
        if found != task_id and events:
            yield task_id, tuple(events)
            events = []
        task_id = found
        try:
            events.append(event_pb2.Event.FromString(body))
        except DecodeError as error:
            raise DataCorrupt(f"an event of task {task_id} cannot be read") from error
    if events:
        yield task_id, tuple(events)

"""What a log line says, and what it never says."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from podium.errors import StorageFull
from podium.telemetry import on_task
from podium.telemetry.log_lines import log_to

TRACE = "0af7651916cd43dd8448eb211c80319c"
NAME, CARD = "Erika Mustermann", "4111-1111-1111-1111"


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    log_to(stream, level="debug")
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def _lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_names_its_trace_and_task(out: io.StringIO) -> None:
    with on_task("a-task", TRACE):
        logging.getLogger("cloud.x").info("step %d ended", 3)
    (line,) = _lines(out)
    assert (line["message"], line["trace_id"], line["task_id"]) == ("step 3 ended", TRACE, "a-task")
    assert len(line["span_id"]) == 16
    assert (line["level"], line["logger"]) == ("info", "cloud.x")


def test_an_error_is_described_without_what_it_says(out: io.StringIO) -> None:
    try:
        try:
            raise KeyError(NAME)
        except KeyError as error:
            raise ValueError(f"{NAME} {CARD}") from error
    except ValueError as error:
        logging.getLogger("conductor.x").error("it failed: %s", error, exc_info=error)
    (line,) = _lines(out)
    assert NAME not in out.getvalue()
    assert line["message"] == "it failed: ValueError"
    assert [one["type"] for one in line["error"]] == ["ValueError", "KeyError"]
    assert "test_log_lines.py" in line["error"][0]["at"][0]


def test_errors_of_ours_have_their_code_and_those_of_the_system_their_number(out: io.StringIO) -> None:
    log = logging.getLogger("cloud.x")
    log.error("%s", StorageFull(f"no room for {NAME}"))
    log.error("%s", FileNotFoundError(2, "no such file", NAME))
    assert [line["message"] for line in _lines(out)] == [
        "StorageFull (STORAGE_FULL)",
        "FileNotFoundError (ENOENT)",
    ]


def test_what_other_libraries_say_is_not_repeated(out: io.StringIO) -> None:
    logging.getLogger("mcp.client.stdio").error("Failed to parse %s", NAME, exc_info=ValueError(NAME))
    logging.getLogger("asyncio").error(f"Task exception was never retrieved: {NAME}")
    assert NAME not in out.getvalue()
    assert all("not logged" in line["message"] for line in _lines(out))


def test_the_second_net_catches_what_slipped_through(out: io.StringIO) -> None:
    logging.getLogger("cloud.x").info("paid with %s", CARD)
    assert _lines(out)[0]["message"] == "paid with [redacted]"


def test_a_line_is_one_line_whatever_is_in_it(out: io.StringIO) -> None:
    logging.getLogger("cloud.x").info("%s", "a\nb\u2028c\x00" * 5000)
    assert len(out.getvalue().splitlines()) == 1
    assert len(out.getvalue()) < 60_000

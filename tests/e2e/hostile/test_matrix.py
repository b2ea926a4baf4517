"""Hostility x engine, through a real server: each contained, typed and attributed; neighbours unharmed."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.status import task_status_name
from podium.v1 import event_pb2, status_pb2, task_pb2
from tests.e2e.hostile.cells import CANNOT, CELLS, ROWS, Cell, columns
from tests.e2e.hostile.ground import Ground, Neighbour, Use, ground, until

pytestmark = pytest.mark.slow
MAX_GROWTH_MB = 60
MAX_PEAK_MB = 200
"""Some dozens of hostile answers, each within its limits, are in memory at once."""
SLOWEST_NEIGHBOUR_S = 20.0
"""The machine that runs the tests has other work too; alone it takes about a second."""
MAX_CELL_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What became of the matrix."""

    outcomes: dict[str, tuple[task_pb2.Task, list[event_pb2.Event]]]
    seconds: dict[str, float]
    peaks_mb: dict[str, float]
    """Largest size of the server while an engine's cells ran."""
    before: Use
    after: Use
    neighbour: Neighbour
    quiet: bool
    """All processes of engine `process` were gone a moment after their last call."""
    left_behind: frozenset[int]
    """Processes that outlived the server."""
    scratch: list[str]
    log: str


def _warm(field: Ground) -> None:
    """What SDKs take for themselves when they are imported is no agent's doing, nor what the functions of engine
    `python` make in the server's own process: one call by every other engine, and all of those.
    """
    first = [next(cell for cell in CELLS if cell.engine == engine) for engine in columns()]
    inside = [cell for cell in CELLS if cell.engine == "python"]
    for task_id in [field.submit(cell) for cell in (*first, *inside)]:
        field.outcome(task_id)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("matrix")
    outcomes, seconds, peaks_mb = {}, {}, {}
    quiet = False
    with ground(folder) as field:
        _warm(field)
        idle = field.use()
        before = field.use()
        with Neighbour(field.client) as neighbour:
            for engine in columns():
                field.forget_peak()
                begun = time.monotonic()
                tasks = {cell.name: field.submit(cell) for cell in CELLS if cell.engine == engine}
                for name, task_id in tasks.items():
                    outcomes[name] = field.outcome(task_id)
                seconds[engine] = time.monotonic() - begun
                peaks_mb[engine] = field.use().peak_mb
                if engine == "process":
                    quiet = until(lambda: field.use().children <= idle.children, within_s=20)
        after = field.use()
        assert field.server.stop() == 0
        left = sorted(os.listdir(field.scratch))
        left_behind = frozenset(pid for pid in after.children if Path(f"/proc/{pid}").exists())
        log = field.server.log()
    return Seen(
        outcomes=outcomes,
        seconds=seconds,
        peaks_mb=peaks_mb,
        before=before,
        after=after,
        neighbour=neighbour,
        quiet=quiet,
        left_behind=left_behind,
        scratch=left,
        log=log,
    )


def _failures(events: list[event_pb2.Event]) -> list[event_pb2.StepFailed]:
    return [event.step_failed for event in events if event.WhichOneof("payload") == "step_failed"]


def _agent(cell: Cell) -> str:
    return "hostile_utterance" if cell.engine == "python" else cell.name


def test_every_cell_fails_with_its_code_and_the_agents_name_in_the_event_log(seen: Seen) -> None:
    wrong = {}
    for cell in CELLS:
        failures = _failures(seen.outcomes[cell.name][1])
        told = [(failure.error.code, failure.error.agent) for failure in failures]
        fits = all(code in cell.codes and agent == _agent(cell) for code, agent in told)
        bounded = all(
            failure.error.message and failure.error.next_step and failure.error.ByteSize() < 16_384
            for failure in failures
        )
        if not (fits and bounded and bool(told) == bool(cell.codes)):
            wrong[cell.name] = [
                (*pair, failure.error.message[:200]) for pair, failure in zip(told, failures, strict=True)
            ]
    assert wrong == {}


def test_every_task_goes_on_as_is_decided_about_failures(seen: Seen) -> None:
    wrong = {}
    for cell in CELLS:
        task, events = seen.outcomes[cell.name]
        done = [
            status_pb2.Recovery.Name(failure.recovery).removeprefix("RECOVERY_") for failure in _failures(events)
        ]
        ended = task_status_name(task.status)
        expected = ["RETRY"] * cell.retries if cell.codes else []
        if cell.codes:
            expected += ["FALLBACK"] if cell.fallback else ["REPLAN"]
        # No other plan has a way round the agent, so a person is asked.
        if done != expected or ended != ("succeeded" if cell.succeeds else "waiting_review"):
            wrong[cell.name] = (ended, done, task.error.code)
    assert wrong == {}


def test_confidence_and_sources_that_an_agent_forged_are_cut_down_and_marked(seen: Seen) -> None:
    for name, most in (
        ("openai_overconfident", 0.6),
        ("openai_forged", 0.6),
        ("a2a_forge", 0.7),
        ("mcp_http_forge", 0.7),
    ):
        task, events = seen.outcomes[name]
        first = next(event.step_succeeded for event in events if event.WhichOneof("payload") == "step_succeeded")
        assert first.confidence <= most, name
        kinds = {source.kind for source in task.result.sources if "as told by" not in source.label}
        assert "sql" not in kinds, name


def test_no_cell_takes_longer_than_its_limits_allow(seen: Seen) -> None:
    assert {engine: spent for engine, spent in seen.seconds.items() if spent > MAX_CELL_S} == {}


def test_the_server_neither_grows_nor_keeps_threads_files_or_processes(seen: Seen) -> None:
    before, after = seen.before, seen.after
    assert after.rss_mb - before.rss_mb < MAX_GROWTH_MB
    assert {name: peak for name, peak in seen.peaks_mb.items() if peak - before.rss_mb > MAX_PEAK_MB} == {}
    assert seen.quiet
    # A program of engine `mcp` waits for its next call: a warden, the first of its own processes, and itself.
    warm = sum(cell.engine == "mcp_stdio" for cell in CELLS)
    assert len(after.children - before.children) <= 3 * warm
    assert after.threads - before.threads < 12  # pools of threads that fill up
    # Connections that are kept for the next call, and the pipes of programs that wait for theirs.
    assert after.files - before.files < 40 + 5 * warm
    assert seen.left_behind == frozenset()
    assert seen.scratch == []


def test_a_neighbour_is_answered_all_along(seen: Seen) -> None:
    assert seen.neighbour.failures == []
    assert len(seen.neighbour.latencies_s) > 5
    assert max(seen.neighbour.latencies_s) < SLOWEST_NEIGHBOUR_S


def test_the_log_has_no_traceback_for_what_agents_did(seen: Seen) -> None:
    assert "Traceback" not in seen.log


def test_every_hostility_of_the_issue_is_tried_on_every_engine_or_cannot_be(seen: Seen) -> None:
    there = {(cell.engine, cell.hostility) for cell in CELLS}
    missing = {(engine, row) for engine in columns() for row in ROWS} - there - set(CANNOT)
    assert missing == set()
    assert set(CANNOT) & there == set()
    print(_table(seen))  # noqa: T201 - shown with `pytest -s`


def _table(seen: Seen) -> str:
    lines = [f"{'':20}" + "".join(f"{engine:>12}" for engine in columns())]
    for row in dict.fromkeys([*ROWS, *(cell.hostility for cell in CELLS)]):
        marks = []
        for engine in columns():
            cells = [cell for cell in CELLS if (cell.engine, cell.hostility) == (engine, row)]
            marks.append(str(len(cells)) if cells else "-" if (engine, row) in CANNOT else "")
        lines.append(f"{row:20}" + "".join(f"{mark:>12}" for mark in marks))
    lines += [f"cannot be: {engine}, {row}: {why}" for (engine, row), why in CANNOT.items()]
    lines += [
        f"{engine}: {spent:.1f} s, server at most {seen.peaks_mb[engine]:.0f} MB"
        for engine, spent in seen.seconds.items()
    ]
    lines.append(
        f"server: {seen.before.rss_mb:.0f} MB, in the end {seen.after.rss_mb:.0f}; "
        f"threads {seen.before.threads} -> {seen.after.threads}; neighbour: {seen.neighbour}"
    )
    return "\n".join(lines)

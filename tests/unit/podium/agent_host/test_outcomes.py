"""What came of writes: once for each key, also over a restart."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.agent_host.errors import IdempotencyKeyReused, OutcomeUnknown
from podium.agent_host.outcomes import Outcome, Outcomes
from podium.errors import AgentCrashed, AgentOverLimit, DataCorrupt


def clock() -> datetime:
    return datetime(2026, 11, 30, tzinfo=UTC)


def open_file(path: Path | None = None, **bounds: int) -> Outcomes:
    return Outcomes(path, clock=clock, **bounds)


@pytest.mark.parametrize("durable", [True, False])
def test_a_key_gets_the_first_outcome(tmp_path: Path, durable: bool) -> None:
    with open_file(tmp_path / "o.sqlite" if durable else None) as outcomes:
        assert outcomes.begin("a", b"1", idempotent=False) is None
        outcomes.end("a", Outcome(output=b"{}"))
        assert outcomes.begin("a", b"1", idempotent=False) == Outcome(output=b"{}")
        with pytest.raises(IdempotencyKeyReused):
            outcomes.begin("a", b"2", idempotent=False)


def test_outcomes_and_errors_outlive_the_host(tmp_path: Path) -> None:
    path = tmp_path / "o.sqlite"
    with open_file(path) as outcomes:
        for key, outcome in (
            ("done", Outcome(output=b'{"a":1}')),
            ("broken", Outcome(error=AgentOverLimit("too much"))),
            ("foreign", Outcome(error=AgentCrashed("it fell"))),
        ):
            outcomes.begin(key, b"1", idempotent=False)
            outcomes.end(key, outcome)
    with open_file(path) as outcomes:
        assert outcomes.begin("done", b"1", idempotent=False) == Outcome(output=b'{"a":1}')
        again = outcomes.begin("broken", b"1", idempotent=False)
        assert again is not None
        assert type(again.error) is AgentOverLimit
        assert str(again.error) == "too much"


def test_a_write_that_began_and_has_no_outcome_is_run_again_only_where_that_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "o.sqlite"
    with open_file(path) as outcomes:
        outcomes.begin("a", b"1", idempotent=False)  # and the host dies
    with open_file(path) as outcomes:
        with pytest.raises(OutcomeUnknown):
            outcomes.begin("a", b"1", idempotent=False)
        assert outcomes.begin("a", b"1", idempotent=True) is None


def test_what_is_forgotten_may_be_tried_again() -> None:
    with open_file() as outcomes:
        outcomes.begin("a", b"1", idempotent=False)
        outcomes.forget("a")
        assert outcomes.begin("a", b"2", idempotent=False) is None


def test_the_oldest_that_ended_make_room_and_running_ones_stay() -> None:
    with open_file(max_entries=3, max_bytes=1_000) as outcomes:
        outcomes.begin("running", b"1", idempotent=False)
        for number in range(20):
            outcomes.begin(f"k{number}", b"1", idempotent=False)
            outcomes.end(f"k{number}", Outcome(output=b"x" * 300))
        assert outcomes.begin("k19", b"1", idempotent=False) is not None
        assert outcomes.begin("k0", b"1", idempotent=False) is None
        with pytest.raises(OutcomeUnknown):
            outcomes.begin("running", b"1", idempotent=False)
        count, size = outcomes._connection.execute(
            "SELECT count(*), coalesce(sum(length(output)), 0) FROM outcomes WHERE output IS NOT NULL"
        ).fetchone()
        assert count <= 3
        assert size <= 1_000


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "o.sqlite"
    path.write_bytes(b"no database" * 1_000)
    with pytest.raises(DataCorrupt):
        open_file(path)

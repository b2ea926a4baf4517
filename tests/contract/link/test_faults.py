"""Every fault of the way: noticed within 30 s on both sides, mended without hands, nothing lost, twice or out of
order. The slow ones run at the same time.
"""

import asyncio
from collections.abc import Mapping

import pytest

from tests.contract.link import namespaces
from tests.contract.link.faults import (
    BREAKS,
    HINDRANCES,
    IDLE_S,
    MESSAGES,
    NOTICED_WITHIN,
    Outcome,
    break_off,
    hinder,
    stopped_server,
)
from tests.contract.link.users import USERS
from tests.fakes.proxy import Fault

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome | BaseException]:
    """Of every case by its name, run together."""

    async def all_of_them() -> Mapping[str, Outcome | BaseException]:
        cases = {f"{user}-{fault.name}": break_off(user, fault) for user in USERS for fault in BREAKS}
        for user in USERS:
            for fault in HINDRANCES:
                cases[f"{user}-{fault.name}"] = hinder(user, fault, size_bytes=20_000, seconds=IDLE_S)
        cases["stopped"] = stopped_server()
        if not namespaces.why_not():
            cases |= {name: case() for name, case in namespaces.CASES.items()}
        results = await asyncio.gather(*cases.values(), return_exceptions=True)
        return dict(zip(cases, results, strict=True))

    return asyncio.run(all_of_them())


def _outcome(outcomes: Mapping[str, Outcome | BaseException], name: str) -> Outcome:
    outcome = outcomes[name]
    if isinstance(outcome, BaseException):
        raise outcome
    print(outcome)  # noqa: T201 - the figures, with -s or when it fails
    return outcome


@pytest.mark.parametrize("fault", BREAKS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("user", USERS)
def test_a_break_is_noticed_and_mended(
    outcomes: Mapping[str, Outcome | BaseException], user: str, fault: Fault
) -> None:
    outcome = _outcome(outcomes, f"{user}-{fault.name}")
    assert outcome.machine_noticed_s <= NOTICED_WITHIN.total_seconds()
    assert outcome.server_noticed_s <= NOTICED_WITHIN.total_seconds()
    assert outcome.effects == list(range(1, MESSAGES + 1))


@pytest.mark.parametrize("fault", HINDRANCES, ids=lambda fault: fault.name)
@pytest.mark.parametrize("user", USERS)
def test_a_slow_way_is_no_break(outcomes: Mapping[str, Outcome | BaseException], user: str, fault: Fault) -> None:
    outcome = _outcome(outcomes, f"{user}-{fault.name}")
    assert outcome.breaks == 0
    assert outcome.effects == list(range(1, MESSAGES + 1))


def test_a_server_that_is_stopped_behind_a_live_connection_is_noticed(
    outcomes: Mapping[str, Outcome | BaseException],
) -> None:
    outcome = _outcome(outcomes, "stopped")
    assert outcome.machine_noticed_s <= NOTICED_WITHIN.total_seconds()
    assert outcome.effects == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", namespaces.CASES)
def test_over_a_network_of_its_own(outcomes: Mapping[str, Outcome | BaseException], name: str) -> None:
    if reason := namespaces.why_not():
        pytest.skip(reason)
    outcome = _outcome(outcomes, name)
    assert outcome.machine_noticed_s <= NOTICED_WITHIN.total_seconds()
    assert outcome.effects == list(range(1, len(outcome.effects) + 1))

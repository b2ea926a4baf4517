"""An endpoint that fails is left alone and looked at again, on a clock that tests move."""

from agents.engines.grpc_breaker import Breaker, BreakerState


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Seconds) -> Breaker:
    breaker = Breaker(clock, threshold=3, first_pause_s=1, longest_pause_s=5)
    for _ in range(3):
        assert breaker.admits()
        breaker.failed()
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(Seconds(), threshold=3)
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.admits()
    breaker = opened(Seconds())
    assert breaker.state is BreakerState.OPEN
    assert not breaker.admits()
    assert breaker.pause_left_s == 1


def test_one_call_sees_whether_it_is_back() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.now += 1
    assert breaker.admits()
    assert breaker.state is BreakerState.HALF_OPEN
    assert not breaker.admits()
    breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED
    assert breaker.admits()


def test_every_failed_look_makes_the_pause_longer_up_to_a_limit_and_a_success_short_again() -> None:
    clock = Seconds()
    breaker = opened(clock)
    for pause_s in (2, 4, 5, 5):
        clock.now = breaker._until_s
        assert breaker.admits()
        breaker.failed()
        assert breaker.pause_left_s == pause_s
        assert not breaker.admits()
    clock.now += 5
    assert breaker.admits()
    breaker.succeeded()
    for _ in range(3):
        breaker.failed()
    assert breaker.pause_left_s == 1


def test_a_look_that_was_given_up_leaves_the_next_call_to_see() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.now += 1
    assert breaker.admits()
    breaker.unsettled()
    assert breaker.admits()


def test_calls_that_went_out_before_it_opened_do_not_prolong_the_pause() -> None:
    clock = Seconds()
    breaker = opened(clock)
    clock.now += 0.9
    breaker.failed()
    clock.now += 0.1
    assert breaker.admits()

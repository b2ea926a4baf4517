"""Steps that wait for each other's results never wait in a circle."""

import itertools
import random

from conductor.policy.waiting import Waiting


def test_a_step_never_waits_for_itself_or_for_one_that_waits_for_it() -> None:
    waiting = Waiting(3)
    assert waiting.barred(1) == {1}
    waiting.add(0, 2)
    waiting.add(1, 0)
    assert waiting.barred(2) == {0, 1, 2}
    assert waiting.barred(0) == {0, 1}
    assert waiting.barred(1) == {1}


def test_whatever_is_added_there_is_an_order() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        count = chance.randint(1, 7)
        waiting, needs = Waiting(count), {step: set[int]() for step in range(count)}
        for _ in range(30):
            step, source = chance.randrange(count), chance.randrange(count)
            if source not in waiting.barred(step):
                waiting.add(step, source)
                needs[step].add(source)
        orders = itertools.permutations(range(count))
        assert any(
            all(order.index(source) < order.index(step) for step in needs for source in needs[step])
            for order in orders
        )

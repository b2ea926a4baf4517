"""The beam against every sequence there is, on a pointer whose probabilities are known."""

import itertools
from collections.abc import Mapping

import numpy as np
import pytest

from conductor.policy.parts import Array
from conductor.policy.selecting_paths import MOST_STEPS, Entries, follow

_SCORES = np.log(
    np.array(
        [
            [0.10, 0.60, 0.25, 0.05],
            [0.30, 0.05, 0.45, 0.20],
            [0.70, 0.10, 0.05, 0.15],
            [0.90, 0.04, 0.03, 0.03],
        ],
        dtype=np.float32,
    )
)
"""Row: the entry chosen last (0 at the start); column: the next one, 0 being STOP."""


class Pointer:
    """A step that depends on the last entry alone; the entry is carried in `previous`."""

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """See `PartRunner`."""
        assert part == "select_step"
        last = inputs["previous"][:, 0].astype(int)
        return {
            "log_probabilities": _SCORES[last],
            "state_after": inputs["state"],
            "coverage_after": inputs["coverage"],
        }


class Tireless:
    """Never stops of itself."""

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """See `PartRunner`."""
        row = np.log(np.array([1e-6, 0.999999], dtype=np.float32))
        count = len(inputs["state"])
        return {
            "log_probabilities": np.tile(row, (count, 1)),
            "state_after": inputs["state"],
            "coverage_after": inputs["coverage"],
        }


def _entries(width: int) -> Entries:
    numbers = np.arange(width, dtype=np.float32)[None, :, None]
    zeros = np.zeros((1, width, 2), dtype=np.float32)
    joint = {
        "entries": np.concatenate((numbers, zeros), axis=2),
        "unary": np.zeros((1, width), dtype=np.float32),
        "keys": zeros,
        "leaves": zeros,
        "enters": zeros,
        "memory_keys": np.zeros((1, 3, 2), dtype=np.float32),
        "memory_values": np.zeros((1, 3, 2), dtype=np.float32),
    }
    return Entries(
        joint=joint,
        memory_mask=np.ones((1, 3), dtype=np.float32),
        edges=np.zeros((width, width, 3), dtype=np.float32),
        places=np.zeros(width, dtype=np.float32),
        links_given=False,
    )


def _every_sequence(longest: int) -> list[tuple[tuple[int, ...], float]]:
    found = []
    for length in range(longest + 1):
        for tools in itertools.product(range(1, 4), repeat=length):
            total = sum(_SCORES[a, b] for a, b in itertools.pairwise((0, *tools, 0)))
            found.append((tools, float(total)))
    return sorted(found, key=lambda item: -item[1])


def test_a_wide_beam_finds_the_likeliest_sequences_in_their_order() -> None:
    found = follow(Pointer(), _entries(4), 40)
    expected = _every_sequence(6)[:5]
    assert [path.entries for path in found[:5]] == [tools for tools, _ in expected]
    assert [path.log_probability for path in found[:5]] == pytest.approx(
        [total for _, total in expected], abs=1e-4
    )


def test_the_log_probabilities_of_the_choices_add_up() -> None:
    for path in follow(Pointer(), _entries(4), 8):
        assert sum(path.steps) == pytest.approx(path.log_probability, abs=1e-4)
        assert len(path.steps) == len(path.rows) == len(path.entries) + 1


def test_a_pointer_that_never_stops_is_ended() -> None:
    found = follow(Tireless(), _entries(2), 4)
    assert max(len(path.entries) for path in found) <= MOST_STEPS

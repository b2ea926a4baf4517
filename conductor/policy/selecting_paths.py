"""Follows the likeliest sequences of tools, several at a time, until each of them says that it is complete."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conductor.policy.parts import Array, Floats, PartRunner

MOST_STEPS = 16
"""A plan is never longer; the longest in the packs and the data has 12."""
_STOP = 0
_BEHIND = 5.0
"""A sequence is given up when it is this far behind the best complete one, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the pointer chooses from: STOP and the tools of the short list, as `select_joint` gave them."""

    joint: Mapping[str, Array]
    memory_mask: Floats
    edges: Floats
    """[k+1, k+1, 1 + FLOWS], of the first to the second: 1 where an allowed link is known, then `flows`."""
    places: Floats
    """[k+1]: where the request speaks of each, 0 at its start and 1 at its end."""
    links_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A complete sequence."""

    entries: tuple[int, ...]
    """Without STOP."""
    log_probability: float
    steps: tuple[float, ...]
    """Log-probability of each choice, STOP's at the end."""
    rows: tuple[Floats, ...]
    """Log-probabilities of every entry at each choice."""


@dataclass(frozen=True, slots=True)
class _Open:
    entries: tuple[int, ...]
    total: float
    steps: tuple[float, ...]
    rows: tuple[Floats, ...]


def follow(parts: PartRunner, entries: Entries, beam: int) -> tuple[Path, ...]:
    """The best complete sequences that a beam of this width meets, best first.

    Raises:
        OnnxError: the runtime failed.
    """
    joint = {name: np.asarray(value) for name, value in entries.joint.items()}
    fixed = {name: joint[name] for name in ("unary", "keys", "enters", "memory_keys", "memory_values")}
    fixed["memory_mask"] = entries.memory_mask
    width = joint["unary"].shape[1]
    flow = np.zeros((1, width, 3), dtype=np.float32)
    place = np.zeros((1, 1), dtype=np.float32)
    moving: dict[str, NDArray[np.float32]] = {
        "state": np.zeros((1, joint["entries"].shape[2]), dtype=np.float32),
        "previous": joint["entries"][:, 0],
        "leaves": np.zeros_like(joint["leaves"][:, 0]),
        "coverage": np.zeros_like(entries.memory_mask),
        "chosen": np.zeros((1, width), dtype=np.float32),
        "linked": np.zeros((1, width), dtype=np.float32),
        "moves": _moves(flow, entries.places[None] - place),
        "given": np.zeros(1, dtype=np.float32),
    }
    alive = [_Open((), 0.0, (), ())]
    done: list[Path] = []
    for depth in range(MOST_STEPS + 1):
        found = parts.run("select_step", {**moving, **fixed})
        scores = np.asarray(found["log_probabilities"], dtype=np.float32)
        totals = scores + np.array([path.total for path in alive], dtype=np.float32)[:, None]
        done.extend(_complete(path, scores[row], float(totals[row, _STOP])) for row, path in enumerate(alive))
        if depth == MOST_STEPS:
            break
        totals[:, _STOP] = -np.inf
        best = np.argsort(-totals, axis=None, kind="stable")[:beam]
        rows, chosen = np.unravel_index(best, totals.shape)
        # A long plan is less likely than a short one in every single form, not as a whole: it is kept.
        kept = totals[rows, chosen] > max(path.log_probability for path in done) - _BEHIND
        rows, chosen = rows[kept], chosen[kept]
        if not len(rows):
            break
        alive = [
            _Open(
                (*alive[row].entries, int(entry)),
                float(totals[row, entry]),
                (*alive[row].steps, float(scores[row, entry])),
                (*alive[row].rows, scores[row]),
            )
            for row, entry in zip(rows, chosen, strict=True)
        ]
        counts = moving["chosen"][rows].copy()
        counts[np.arange(len(rows)), chosen] += 1.0
        after, before = entries.edges[chosen, :, 1], entries.edges[:, chosen, 1].T
        known = flow[rows]
        flow = np.stack((after, np.maximum(known[:, :, 1], after), np.maximum(known[:, :, 2], before)), axis=-1)
        moving = {
            "state": np.asarray(found["state_after"])[rows],
            "previous": joint["entries"][0, chosen],
            "leaves": joint["leaves"][0, chosen],
            "coverage": np.asarray(found["coverage_after"])[rows],
            "chosen": counts,
            "linked": entries.edges[chosen, :, 0],
            "moves": _moves(flow, entries.places[None] - entries.places[chosen][:, None]),
            "given": np.full(len(rows), float(entries.links_given), dtype=np.float32),
        }
    return tuple(sorted(done, key=lambda path: -path.log_probability)[: 3 * beam])


def _moves(flow: Floats, ahead: Floats) -> Floats:
    """See `conductor.training.selector.moves`."""
    return np.concatenate((flow, np.stack((ahead, np.abs(ahead), np.maximum(-ahead, 0)), axis=-1)), axis=-1)


def _complete(path: _Open, scores: Floats, total: float) -> Path:
    return Path(
        entries=path.entries,
        log_probability=total,
        steps=(*path.steps, float(scores[_STOP])),
        rows=(*path.rows, scores),
    )

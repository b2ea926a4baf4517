"""One table: a planner's predictions, the baselines beside it, and the marks that were asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conductor.evaluation.calibration import Believed, believed, judged
from conductor.evaluation.intervals import RESAMPLES, SEED, Interval, differences, intervals
from conductor.evaluation.rows import GoldRow, Predictions, read_gold, read_predictions
from conductor.evaluation.scoring import Mode, Scores, score
from conductor.evaluation.shape import Shape, shape
from podium.errors import InvalidRequest

OURS = "predictions"
"""Name of the row that is judged; baselines have other names."""


class MarkUnknown(InvalidRequest):
    """A mark, or a baseline, that is not NAME=VALUE, or names a figure that the mode does not have."""

    code = "EVALUATION_MARK_INVALID"
    advice = "Write --mark FIGURE=PERCENT, e.g. --mark node_f1=85, and --baseline NAME=FILE; each name once."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One planner's figures."""

    name: str
    figures: Mapping[str, Interval]
    shape: Shape
    missing: int
    """Requests without a usable prediction; they count as wrong."""
    invalid: int
    repeated: int
    unknown: int
    """Predictions about requests that have no gold; they do not count."""
    confidence: Believed | None = None
    """Where every usable prediction says how sure it is."""
    ahead: Mapping[str, Interval] | None = None
    """For a baseline: how far the judged predictions are ahead of it."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready values."""
        written = {
            "name": self.name,
            "figures": {name: value.to_json() for name, value in self.figures.items()},
            "missing": self.missing,
            "invalid": self.invalid,
            "repeated": self.repeated,
            "unknown": self.unknown,
            **self.shape.to_json(),
            "confidence": None if self.confidence is None else self.confidence.to_json(),
        }
        if self.ahead is not None:
            written["ahead"] = {name: value.to_json() for name, value in self.ahead.items()}
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole table."""

    mode: Mode
    requests: int
    resamples: int
    seed: int
    rows: tuple[Row, ...]
    """The judged predictions first."""
    missed: tuple[str, ...]
    """The marks that were not reached, in words."""

    def to_json(self) -> dict[str, Any]:
        """The table as JSON-ready values; figures in percent, intervals of 95 %."""
        ours, *others = (row.to_json() for row in self.rows)
        return {
            "mode": self.mode,
            "requests": self.requests,
            "bootstrap": {"resamples": self.resamples, "seed": self.seed, "coverage": 0.95},
            OURS: ours,
            "baselines": others,
            "missed": list(self.missed),
            "ok": not self.missed,
        }


def evaluate(
    *,
    mode: Mode,
    gold: Path,
    predictions: Path,
    baselines: Mapping[str, Path],
    marks: Mapping[str, float],
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Report:
    """Score a file of predictions, and those of baselines, against the right plans.

    Raises:
        GoldInvalid: the right plans cannot be read or are not made for the mode.
        PredictionsUnreadable: a file of predictions cannot be read.
        MarkUnknown: a mark names a figure that the mode does not have.
    """
    right = read_gold(gold)
    files = {OURS: predictions} | dict(baselines)
    read = {name: read_predictions(path) for name, path in files.items()}
    scored = {name: score(mode, right, found.by_id) for name, found in read.items()}
    rows = []
    for name, found in read.items():
        ahead = None if name == OURS else differences(scored[OURS], scored[name], resamples=resamples, seed=seed)
        figures = intervals(scored[name], resamples=resamples, seed=seed)
        rows.append(_row(name, right, found, figures, ahead))
    return Report(
        mode=mode,
        requests=len(right),
        resamples=resamples,
        seed=seed,
        rows=tuple(rows),
        missed=_missed(scored[OURS], marks),
    )


def named_values(written: Sequence[str], option: str) -> dict[str, str]:
    """NAME=VALUE arguments as a mapping.

    Raises:
        MarkUnknown: one has no name or no value, or a name comes twice.
    """
    found: dict[str, str] = {}
    for item in written:
        name, _, value = item.partition("=")
        if not name or not value or name in found or name == OURS:
            raise MarkUnknown(f"{option} {item}: NAME=VALUE is expected, each name once", field=option.strip("-"))
        found[name] = value
    return found


def marks_of(written: Sequence[str]) -> dict[str, float]:
    """`FIGURE=PERCENT` arguments as numbers.

    Raises:
        MarkUnknown: one is not of that form.
    """
    found: dict[str, float] = {}
    for name, value in named_values(written, "--mark").items():
        try:
            found[name] = float(value)
        except ValueError as error:
            raise MarkUnknown(f"--mark {name}={value}: the value is no number", field="mark") from error
        if not 0 <= found[name] <= 100:
            raise MarkUnknown(f"--mark {name}={value}: figures are percentages from 0 to 100", field="mark")
    return found


def _missed(scores: Scores, marks: Mapping[str, float]) -> tuple[str, ...]:
    totals = scores.totals()
    unknown = [name for name in marks if name not in totals]
    if unknown:
        raise MarkUnknown(f"there is no figure {unknown[0]}, but {', '.join(totals)}", field="mark")
    return tuple(
        f"{name} {totals[name]:.1f} is below {mark:g}" for name, mark in marks.items() if totals[name] < mark
    )


def _row(
    name: str,
    right: Sequence[GoldRow],
    found: Predictions,
    figures: Mapping[str, Interval],
    ahead: Mapping[str, Interval] | None,
) -> Row:
    ids = [row.id for row in right]
    known = set(ids)
    sure = all(plan.confidence is not None for plan in found.by_id.values())
    return Row(
        name=name,
        figures=figures,
        shape=shape(found.by_id, ids),
        confidence=believed(judged(right, found.by_id)) if sure else None,
        missing=sum(key not in found.by_id for key in ids),
        invalid=found.invalid,
        repeated=found.repeated,
        unknown=sum(key not in known for key in found.by_id),
        ahead=ahead,
    )

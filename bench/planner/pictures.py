"""The pictures of docs/results.md; matplotlib is loaded only here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_WIDTH, _HEIGHT, _DOTS = 6.0, 3.6, 90
_FIRST, _SECOND, _PALE = "#1f5f8b", "#c8553d", "#9aa5b1"


def _axes(x: str, y: str, title: str) -> tuple[Any, Any]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(_WIDTH, _HEIGHT), dpi=_DOTS)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, color="#e5e8eb")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    # Without the software's version in it, the same figures make the same file.
    figure.savefig(path, metadata={"Software": None})
    pyplot.close(figure)


def risk_coverage(curves: Mapping[str, Sequence[Sequence[float]]], accept: Mapping[str, Any], path: Path) -> None:
    """Share of wrong plans among the accepted, against the share that is accepted."""
    figure, axes = _axes(
        "share of requests accepted, surest first", "wrong tool sets among them", "Risk and coverage"
    )
    for (name, curve), colour in zip(curves.items(), (_FIRST, _SECOND, "#5b8c5a", "#8a6d9e"), strict=False):
        axes.plot([x for x, _ in curve], [y for _, y in curve], label=name, color=colour)
    axes.axhline(0.05, color=_PALE, linestyle="--", linewidth=1, label="5 %")
    if accept.get("precision") is not None:
        axes.plot(
            [accept["coverage"] / 100],
            [1 - accept["precision"] / 100],
            "o",
            color="black",
            label="shipped threshold",
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _save(figure, path)


def reliability(bins: Sequence[Sequence[float]], path: Path) -> None:
    """Share of right plans against confidence, in bins of equal mass."""
    figure, axes = _axes(
        "confidence", "share with the right tool set", f"Reliability, {len(bins)} bins of equal mass"
    )
    axes.plot([0, 1], [0, 1], color=_PALE, linestyle="--", linewidth=1)
    axes.plot([one[1] for one in bins], [one[2] for one in bins], "o-", color=_FIRST, markersize=4)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _save(figure, path)


def training(history: Path, marks: Sequence[str], title: str, path: Path) -> None:
    """Loss and marks of one training by step; the beginning of each stage is a line."""
    rows = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines() if line.strip()]
    figure, axes = _axes("training step", "loss", title)
    losses = [(row["step"], row["loss"]) for row in rows if isinstance(row.get("loss"), int | float)]
    axes.plot([x for x, _ in losses], [y for _, y in losses], color=_PALE, label="loss")
    other = axes.twinx()
    other.set_ylabel("mark on the select parts, %")
    other.spines[["top"]].set_visible(False)
    for name, colour in zip(marks, (_FIRST, _SECOND, "#5b8c5a", "#8a6d9e"), strict=False):
        points = [(row["step"], found) for row in rows if (found := mark_of(row, name)) is not None]
        other.plot([x for x, _ in points], [y for _, y in points], "o-", markersize=3, color=colour, label=name)
    for step, stage in stages(rows):
        axes.axvline(step, color="#c0c7ce", linewidth=1)
        axes.text(step, axes.get_ylim()[1], f" {stage}", fontsize=7, va="top")
    lines = [*axes.get_lines()[:1], *other.get_lines()]
    axes.legend(lines, [line.get_label() for line in lines], fontsize=8, frameon=False, loc="center right")
    _save(figure, path)


def mark_of(row: Mapping[str, Any], name: str) -> float | None:
    """A mark in a row of history: by its name, or down a path `scores.nestools.argument_f1`."""
    value: Any = row
    if name in row:
        value = row[name]
    else:
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def stages(rows: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Where each stage of a training begins."""
    found: list[tuple[int, str]] = []
    for row in rows:
        stage = row.get("stage")
        if stage is not None and (not found or found[-1][1] != str(stage)):
            found.append((int(row["step"]), str(stage)))
    return found

"""docs/results.md out of the figures and a template that holds the words: `bench/planner/page.txt`.

The template's `{{name}}` are replaced by tables; all else in it was written by somebody who read the figures.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]
_NAMES = {
    "predictions": "**policy**",
    "nearest": "nearest neighbour",
    "linear": "TF-IDF, linear SVM",
    "chains": "linear SVM, training chains re-ranked",
    "zero_shot": "MiniLM zero-shot",
    "rules": "rules (the packs' own)",
}
_FIGURES = {
    "node_f1": "node F1",
    "link_f1": "link F1",
    "acc": "Acc",
    "tool_f1": "tool F1",
    "dep_f1": "dependency F1",
    "arg_f1": "argument F1",
    "exact": "whole plan",
}


class UnknownBlock(ValueError):
    """The template names a block that there is none of."""


def page(template: str, results: Results) -> str:
    """The whole page.

    Raises:
        UnknownBlock: the template names an unknown block.
    """

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in BLOCKS:
            raise UnknownBlock(f"there is no block {name}, but {', '.join(sorted(BLOCKS))}")
        return BLOCKS[name](results)

    return re.sub(r"\{\{([a-z_]+)\}\}", block, template)


def _made(results: Results) -> str:
    made = results["made"]
    machine = made["machine"]
    model = made["model"]
    return (
        f"Made by `python -m bench.planner` on {made['date']}, commit `{made['commit']}`. Planner: version "
        f"{model['version'] or 'unnamed'}, exported at commit `{model['commit'] or 'unknown'}`, SHA-256 "
        f"`{model['sha256'][:16]}`, {model['bytes'] / 1e6:.1f} MB. Machine: {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}, load {machine['load_1min']} at the end. "
        f"Intervals: 95 %, 1,000 bootstrap samples of requests, seed {made['seed']}. "
        f"The run took {made['seconds']:.0f} s; what had not changed was taken from earlier runs."
    )


def _data(results: Results) -> str:
    rows = [
        (
            suite["title"],
            str(suite["requests"]),
            "written for this, before the first training"
            if suite["kept"]
            else "development part, never trained on",
            str(suite["score"]["predictions"]["missing"]),
        )
        for suite in results["suites"].values()
    ]
    return _table(("requests", "count", "what they are", "without a usable plan"), rows)


def _ultratool(results: Results) -> str:
    parts = []
    for part, title in (("dev", "Random part"), ("dev_disjoint", "Tool sets that never occur in training")):
        given, without = (results["suites"].get(f"ultratool-{part}-{kind}") for kind in ("links", "nolinks"))
        if given is None or without is None:
            continue
        rows = [_row("policy, links given", given, given["score"]["predictions"], bold=True)]
        rows.append(_row("policy, links not given", without, without["score"]["predictions"], bold=True))
        rows += [_row(_NAMES[one["name"]], without, one) for one in without["score"]["baselines"]]
        rows.append(("mark, links given", *(f"{given['marks'][name]:g}" for name in given["marks"])))
        rows.append(("mark, links not given", *(f"{without['marks'][name]:g}" for name in without["marks"])))
        names = [_FIGURES[name] for name in given["score"]["predictions"]["figures"]]
        parts.append(f"{title}, {given['requests']} requests.\n\n{_table(('', *names), rows)}")
    return "\n\n".join(parts)


def _suite(*names: str) -> Callable[[Results], str]:
    """Suites one after the other, each with its baselines and marks."""

    def block(results: Results) -> str:
        return "\n\n".join(_one_suite(results["suites"][name]) for name in names if name in results["suites"])

    return block


def _one_suite(suite: Mapping[str, Any]) -> str:
    ours = suite["score"]["predictions"]
    rows = [_row("**policy**", suite, ours)]
    rows += [_row(_NAMES[one["name"]], suite, one) for one in suite["score"]["baselines"]]
    if suite["marks"]:
        rows.append(
            ("mark", *(f"{suite['marks'][name]:g}" if name in suite["marks"] else "" for name in ours["figures"]))
        )
    names = [_FIGURES[name] for name in ours["figures"]]
    return f"{suite['title']}, {suite['requests']} requests.\n\n{_table(('', *names), rows)}"


def _row(
    title: str, suite: Mapping[str, Any], scored: Mapping[str, Any], *, bold: bool = False
) -> tuple[str, ...]:
    """A planner's figures; where a mark was asked for, ours say whether it is reached."""
    marks = suite["marks"] or {}
    ours = scored["name"] == "predictions"
    cells = []
    for name, figure in scored["figures"].items():
        text = f"{figure['value']:.1f} [{figure['low']:.1f}, {figure['high']:.1f}]"
        if ours and name in marks:
            text += " ✓" if figure["value"] >= marks[name] else f" ({figure['value'] - marks[name]:+.1f})"
        cells.append(text)
    return (f"**{title}**" if bold else title, *cells)


def _kept(results: Results) -> str:
    rows = []
    for found in results["kept"]:
        reached = "" if found["mark"] is None else f"{found['mark']:g}"
        value = f"{found['value']:.1f} [{found['low']:.1f}, {found['high']:.1f}]"
        if found["mark"] is not None:
            value += " ✓" if found["value"] >= found["mark"] else f" ({found['value'] - found['mark']:+.1f})"
        rows.append((found["title"], f"{found['right']} of {found['of']}", value, reached))
    return _table(("", "right", "%", "mark"), rows)


def _calibration(results: Results) -> str:
    rows = []
    for name, found in results["calibration"].items():
        accepted = found["accepted"]
        precision = "none accepted" if accepted["precision"] is None else f"{accepted['precision']:.1f}"
        if accepted["interval"] is not None:
            precision += f" [{accepted['interval']['low']:.1f}, {accepted['interval']['high']:.1f}]"
        rows.append(
            (
                name,
                str(found["requests"]),
                f"{found['right']:.1f}",
                f"{found['calibration_error']:.3f}",
                f"{found['error_by_chance']:.3f}",
                f"{accepted['coverage']:.1f}",
                precision,
            )
        )
    header = (
        "",
        "requests",
        "right set %",
        "calibration error",
        "of it by chance",
        "accepted %",
        "right among them %",
    )
    return _table(header, rows)


def _threshold(results: Results) -> str:
    return f"{results['made']['accept_at']:.3f}"


def _latency(results: Results) -> str:
    rows = [(row["what"], row["value"], row["mark"]) for row in results["latency"]]
    return _table(("", "measured", "mark"), rows) if rows else "Not measured in this run."


def _planning(results: Results) -> str:
    rows = [
        (suite["title"], str(suite["requests"]), f"{suite['score']['planning']['seconds']:.1f}")
        for suite in results["suites"].values()
    ]
    return _table(("batch", "requests", "s, with the tools"), rows)


def _ablations(results: Results) -> str:
    parts = []
    for table in results["ablations"]:
        rows = [(row["name"], *map(str, row["values"])) for row in table["rows"]]
        parts.append(f"{table['title']}\n\n{_table(('', *table['columns']), rows)}")
    return "\n\n".join(parts) or "None were recorded."


def _pictures(results: Results) -> str:
    lines = [
        f"![{title}](results/{name})" for name, title in results["pictures"].items() if name.startswith("training")
    ]
    return "\n\n".join(lines) or "No history of a training was given."


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


BLOCKS: Mapping[str, Callable[[Results], str]] = {
    "made": _made,
    "data": _data,
    "ultratool": _ultratool,
    "nestools": _suite("nestools-dev"),
    "bfcl": _suite(
        "bfcl-multiple-dev-fresh",
        "bfcl-multiple-dev-all",
        "bfcl-live_multiple-dev-fresh",
        "kept-parallel",
        "kept-parallel-multiple",
    ),
    "sealtools": _suite("sealtools-dev"),
    "packs": _suite("packs-dev"),
    "new_agents": _suite("kept-new-agents"),
    "kept": _kept,
    "calibration": _calibration,
    "threshold": _threshold,
    "latency": _latency,
    "planning": _planning,
    "ablations": _ablations,
    "pictures": _pictures,
}

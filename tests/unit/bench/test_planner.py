"""The pieces of `python -m bench.planner` on plans that were made up."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.planner import judging, pictures
from bench.planner.page import BLOCKS, UnknownBlock, page
from bench.planner.running import Bench, PieceFailed, last_object, run
from bench.planner.suites import Suite, write
from conductor.policy.cards import ToolCard
from conductor.training.examples import Example, GoldStep

TEMPLATE = Path(__file__).parents[3] / "bench" / "planner" / "page.txt"
CARDS = (ToolCard(name="find", description="finds"), ToolCard(name="book"), ToolCard(name="clarify"))


def _example(key: str, *tools: str, source: str = "plans/x") -> Example:
    steps = tuple(GoldStep(tool=name, depends_on=(at - 1,) if at else ()) for at, name in enumerate(tools))
    return Example(source=source, id=key, request=f"request {key}", tools=CARDS, steps=steps)


def _suite(*examples: Example, **more: Any) -> Suite:
    return Suite(name="made-up", title="Made up", mode="mean", examples=examples, **more)


def _predictions(path: Path, plans: dict[str, list[str]], confidence: float = 0.5) -> Path:
    rows = [
        {"id": key, "steps": [{"tool": name, "depends_on": []} for name in tools], "confidence": confidence}
        for key, tools in plans.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_what_a_planner_sees_holds_no_gold(tmp_path: Path) -> None:
    links = frozenset({("find", "book")})
    files = write(_suite(_example("1", "find", "book"), _example("2", "find"), links=links), tmp_path)
    assert files.tools is not None
    rows = [json.loads(line) for line in files.batch.read_text("utf-8").splitlines()]
    assert [set(row) for row in rows] == [{"id", "request"}] * 2
    assert json.loads(files.tools.read_text("utf-8"))["links"] == [["find", "book"]]
    assert "depends_on" not in files.batch.read_text("utf-8") + files.tools.read_text("utf-8")
    assert [json.loads(line)["id"] for line in files.gold.read_text("utf-8").splitlines()] == ["1", "2"]


def test_requests_with_tools_of_their_own_carry_them(tmp_path: Path) -> None:
    other = replace(_example("2", "find"), tools=CARDS[:1])
    files = write(_suite(_example("1", "find"), other), tmp_path)
    assert files.tools is None
    rows = [json.loads(line) for line in files.batch.read_text("utf-8").splitlines()]
    assert [len(row["tools"]) for row in rows] == [3, 1]


def test_the_first_agent_is_one_that_the_right_plan_can_begin_with(tmp_path: Path) -> None:
    suite = _suite(_example("1", "find", "book"), _example("2", "find", "book"), _example("3", "book"))
    out = _predictions(tmp_path / "p.jsonl", {"1": ["find", "clarify"], "2": ["book", "find"]})
    found = judging.first_agents(suite, out)
    assert (found.right, found.of) == (1, 3)
    assert judging.first_agents(suite, out, steps=1).right == 0


def test_sets_that_are_right_too(tmp_path: Path) -> None:
    suite = _suite(_example("1", "clarify"), _example("2", "find"), _example("3", "clarify"))
    suite = replace(suite, also={"1": (frozenset(),), "3": (frozenset(),)})
    found = judging.right_sets(suite, _predictions(tmp_path / "p.jsonl", {"1": [], "2": []}))
    assert (found.right, found.of) == (1, 3), "no prediction is no empty plan"


def test_a_refusal_is_an_empty_plan_or_a_question(tmp_path: Path) -> None:
    suite = _suite(_example("1"), _example("2"), _example("3"), _example("4"))
    out = _predictions(tmp_path / "p.jsonl", {"1": [], "2": ["clarify"], "3": ["find"]}, confidence=0.6)
    assert judging.refused_in([(suite, out)]).right == 2
    assert judging.refused_in([(suite, out)], ask_below=0.7).right == 3


def _bench(tmp_path: Path, said: list[str]) -> Bench:
    return Bench(
        work=tmp_path,
        data=tmp_path,
        model=None,
        podium_data=tmp_path,
        threads=1,
        say=lambda text: said.append(text),
    )


def test_a_piece_is_run_again_only_when_what_it_depends_on_has_changed(tmp_path: Path) -> None:
    said: list[str] = []
    bench = _bench(tmp_path, said)
    made = [bench.remembered("piece", key, lambda key=key: {"of": key}) for key in ("a", "a", "b", "b")]
    assert made == [{"of": "a"}, {"of": "a"}, {"of": "b"}, {"of": "b"}]
    assert len(said) == 2

    def broken() -> dict[str, Any]:
        raise PieceFailed("killed")

    with pytest.raises(PieceFailed):
        bench.remembered("piece", "c", broken)
    assert bench.remembered("piece", "b", broken) == {"of": "b"}, "what was known is still known"


def test_a_process_that_fails_says_its_last_words() -> None:
    with pytest.raises(PieceFailed, match="no such thing"):
        run(["python3", "-c", "import sys; sys.exit('no such thing')"])
    assert last_object(run(["python3", "-c", "print('line'); print('{\"a\": 1}')"])) == {"a": 1}


def test_the_page_is_written_from_figures(tmp_path: Path) -> None:
    figure = {"value": 70.0, "low": 60.0, "high": 80.0}
    row = {"name": "predictions", "figures": {"node_f1": figure, "acc": figure}, "missing": 1}
    suite = {
        "title": "Made up",
        "requests": 3,
        "kept": True,
        "marks": {"node_f1": 65, "acc": 72.5},
        "score": {"predictions": row, "baselines": [row | {"name": "nearest"}], "planning": {"seconds": 2.0}},
    }
    results = {
        "suites": {"kept-new-agents": suite, "ultratool-dev-links": suite, "ultratool-dev-nolinks": suite},
        "kept": [{"title": "Kept", "mark": 80, "right": 2, "of": 3, **figure}],
        "calibration": {
            "all": {
                "requests": 3,
                "right": 70.0,
                "calibration_error": 0.04,
                "error_by_chance": 0.03,
                "accepted": {"precision": None, "coverage": 0.0, "interval": None},
            }
        },
        "latency": [{"what": "one request", "value": "5 ms", "mark": "15 ms"}],
        "ablations": [
            {"title": "Parts", "columns": ["node F1"], "rows": [{"name": "without X", "values": [69.1]}]}
        ],
        "pictures": {"training-selector.png": "Training"},
        "made": {
            "date": "2026-11-30",
            "commit": "abc",
            "model": {"version": "1", "commit": "def", "sha256": "0" * 64, "bytes": 1},
            "machine": {"cores": 2, "system": "Linux", "python": "3.11", "load_1min": 0.1},
            "seed": 0,
            "accept_at": 0.8,
            "seconds": 5.0,
        },
    }
    text = page(TEMPLATE.read_text("utf-8"), results)
    assert "{{" not in text
    assert "| **policy** | 70.0 [60.0, 80.0] ✓ | 70.0 [60.0, 80.0] (-2.5) |" in text
    assert "| nearest neighbour | 70.0 [60.0, 80.0] | 70.0 [60.0, 80.0] |" in text
    assert "| Kept | 2 of 3 | 70.0 [60.0, 80.0] (-10.0) | 80 |" in text
    assert "none accepted" in text
    assert "![Training](results/training-selector.png)" in text
    with pytest.raises(UnknownBlock, match="beauty"):
        page("{{beauty}}", results)
    assert all(f"{{{{{name}}}}}" in TEMPLATE.read_text("utf-8") for name in BLOCKS), "every table stands somewhere"


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pictures.reliability([[10, 0.2, 0.25], [10, 0.8, 0.75]], tmp_path / "reliability.png")
    accept = {"coverage": 50.0, "precision": 95.0}
    pictures.risk_coverage({"all": [[0.5, 0.0], [1.0, 0.2]]}, accept, tmp_path / "risk.png")
    history = tmp_path / "history.jsonl"
    rows = [
        {"step": 10, "stage": "single", "loss": 2.0},
        {"step": 20, "stage": "chains", "loss": 1.0, "random node_f1": 50.0},
        {"step": 30, "scores": {"nestools": {"argument_f1": 40.0}}},
    ]
    history.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    marks = ("random node_f1", "scores.nestools.argument_f1", "absent")
    pictures.training(history, marks, "Training", tmp_path / "results" / "training.png")
    for path in (tmp_path / "reliability.png", tmp_path / "risk.png", tmp_path / "results" / "training.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 60_000
    assert [pictures.mark_of(rows[2], name) for name in marks] == [None, 40.0, None]
    assert pictures.stages(rows) == [(10, "single"), (20, "chains")]

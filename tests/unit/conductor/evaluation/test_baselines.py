"""Baselines learn what is easy, plan over what is there, and never look at gold."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from conductor.evaluation.baselines.__main__ import main
from conductor.evaluation.baselines.linear import Linear
from conductor.evaluation.baselines.nearest import Nearest
from conductor.evaluation.baselines.tasks import BaselineInputInvalid, BaselineLibraryMissing, Task, read_tasks
from conductor.evaluation.baselines.zero_shot import ZeroShot
from conductor.policy.cards import ToolCard
from conductor.training.examples import Example, GoldStep

CARDS = tuple(ToolCard(name=name) for name in ("find_flight", "book_flight", "find_hotel", "send_mail"))
_PLANS = {
    "fly to {} and book the flight": ("find_flight", "book_flight"),
    "a hotel in {} please": ("find_hotel",),
    "write a mail to {}": ("send_mail",),
    "a hotel in {} and mail it to me": ("find_hotel", "send_mail"),
}


def _examples() -> list[Example]:
    places = ("Paris", "Rome", "Oslo", "Lima", "Bonn", "Cairo")
    return [
        Example(
            source="made up",
            id=f"{number}-{place}",
            request=wording.format(place),
            tools=CARDS,
            steps=tuple(
                GoldStep(
                    tool=name,
                    arguments={"from": {"step": at - 1, "field": "id"}, "place": place}
                    if at
                    else {"place": place},
                    depends_on=(at - 1,) if at else (),
                )
                for at, name in enumerate(names)
            ),
        )
        for number, (wording, names) in enumerate(_PLANS.items())
        for place in places
    ]


def _tasks(*requests: str, tools: tuple[ToolCard, ...] = CARDS) -> list[Task]:
    return [Task(id=number, request=text, tools=tools) for number, text in enumerate(requests)]


def test_the_nearest_request_is_copied_with_its_arguments() -> None:
    (plan,) = Nearest(_examples()).plan(_tasks("fly to Rome and book the flight"))
    assert [step["tool"] for step in plan.steps] == ["find_flight", "book_flight"]
    assert plan.steps[1]["arguments"] == {"from": {"step": 0, "field": "id"}, "place": "Rome"}
    assert plan.steps[1]["depends_on"] == [0]


def test_a_copied_step_loses_what_is_not_there() -> None:
    (plan,) = Nearest(_examples()).plan(_tasks("fly to Rome and book the flight", tools=CARDS[1:]))
    assert [(step["tool"], step["arguments"], step["depends_on"]) for step in plan.steps] == [
        ("book_flight", {"place": "Rome"}, [])
    ]


@pytest.mark.parametrize("use", ["threshold", "chains"])
def test_linear_machines_learn_which_words_need_which_tools(use: str) -> None:
    linear = Linear(_examples(), use=use)  # type: ignore[arg-type] - parametrised
    plans = linear.plan(_tasks("fly to Berlin and book the flight", "a hotel in Berlin and mail it to me"))
    assert [[step["tool"] for step in plan.steps] for plan in plans] == [
        ["find_flight", "book_flight"],
        ["find_hotel", "send_mail"],
    ]
    assert plans[0].steps[1]["depends_on"] == [0]
    (none,) = linear.plan(_tasks("fly to Berlin", tools=(ToolCard(name="new"),)))
    assert none.steps == ()


class _Letters:
    """Embeds texts by how often each letter occurs."""

    space = "letters"
    dimensions = 26
    max_tokens = 1000

    def embed(self, texts: list[str]) -> np.ndarray:
        rows = np.array(
            [[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts], dtype=np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_without_training_the_nearest_descriptions_are_taken() -> None:
    plans = ZeroShot(_Letters(), count=2).plan(_tasks("send mail", "find hotel"))
    assert [plan.steps[0]["tool"] for plan in plans] == ["send_mail", "find_hotel"]
    assert len(plans[0].steps) == 2


def test_a_batch_with_gold_in_it_is_refused(tmp_path: Path) -> None:
    batch = tmp_path / "in.jsonl"
    batch.write_text('{"id": 1, "request": "x", "tools": [], "steps": []}\n', encoding="utf-8")
    with pytest.raises(BaselineInputInvalid, match="row 1"):
        read_tasks(batch, None)
    batch.write_text('{"id": 1, "request": "x"}\n', encoding="utf-8")
    with pytest.raises(BaselineInputInvalid, match="no tools"):
        read_tasks(batch, None)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(BaselineLibraryMissing):
        Nearest(_examples())


def test_gold_changes_nothing_of_what_a_baseline_predicts(tmp_path: Path) -> None:
    """Development gold is shuffled among the requests, then taken away; the predictions stay the same."""
    from conductor.training.splits import part_of

    data = tmp_path / "ultratool"
    data.mkdir()
    names = [card.name for card in CARDS]
    (data / "tools.json").write_text(json.dumps({"tools": [{"name": name} for name in names]}), encoding="utf-8")
    examples = _examples()
    rows = [
        {
            "id": example.id,
            "steps": [{"tool": step.tool, "depends_on": list(step.depends_on)} for step in example.steps],
        }
        for example in examples
    ]
    (data / "requests.jsonl").write_text(
        "".join(json.dumps({"id": one.id, "request": one.request}) + "\n" for one in examples), encoding="utf-8"
    )
    kept = [at for at, one in enumerate(examples) if part_of(_as_ultratool(one)) in ("dev", "dev_disjoint")]
    assert 1 < len(kept) < len(examples)
    batch = tmp_path / "in.jsonl"
    batch.write_text(
        "".join(json.dumps({"id": examples[at].id, "request": examples[at].request}) + "\n" for at in kept),
        encoding="utf-8",
    )
    written = []
    for variant in ("as it is", "shuffled", "gone"):
        gold = list(rows)
        if variant == "shuffled":
            same_set = [at for at in kept if part_of(_as_ultratool(examples[at])) == "dev"]
            for at, other in zip(same_set, [*same_set[1:], *same_set[:1]], strict=True):
                gold[at] = {**rows[other], "id": rows[at]["id"]}
        (data / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold), encoding="utf-8")
        if variant == "gone":
            batch_rows = [json.loads(line) for line in batch.read_text("utf-8").splitlines()]
            gone = {row["id"] for row in batch_rows}
            for name in ("requests.jsonl", "gold.jsonl"):
                lines = (data / name).read_text("utf-8").splitlines()
                left = [line for line in lines if json.loads(line)["id"] not in gone]
                (data / name).write_text("\n".join(left) + "\n", encoding="utf-8")
        out = tmp_path / f"{variant}.jsonl"
        learning = ["--train", "ultratool", "--data", str(tmp_path)]
        planning = ["--batch", str(batch), "--tools", str(data / "tools.json"), "--out", str(out)]
        main(["nearest", *learning, *planning])
        written.append(out.read_bytes())
    assert written[0] == written[1] == written[2]
    assert written[0].count(b"\n") == len(kept)


def _as_ultratool(example: Example) -> Example:
    return Example(
        source="ultratool", id=example.id, request=example.request, tools=example.tools, steps=example.steps
    )

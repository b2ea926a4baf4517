"""The fit finds what was put in, and stays sober where there is little to learn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from conductor.plan import Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.filling import Filled, FilledStep
from conductor.policy.selecting import Hypothesis
from conductor.training.calibrate import CalibrationConfig, decisions, fitted
from conductor.training.examples import Example, GoldStep
from conductor.training.logistic import fit
from conductor.training.observing import Observations, Observer, Searched, without_its_tools
from conductor.training.ranking import fit_ranking


def _coins(count: int, seed: int = 2) -> tuple[list[dict[str, float]], list[bool]]:
    """Right with odds 3a - 1; `noise` says nothing, `always` never changes."""
    random = np.random.default_rng(seed)
    features = [{"a": float(a), "noise": float(b), "always": 1.0} for a, b in random.normal(size=(count, 2))]
    right = [bool(random.random() < 1 / (1 + math.exp(1 - 3 * row["a"]))) for row in features]
    return features, right


def test_the_odds_that_were_put_in_come_out() -> None:
    features, right = _coins(4_000)
    found = fit(("a", "noise", "always"), features, right, [str(at) for at in range(4_000)]).regression
    assert found.weights["a"] == pytest.approx(3.0, abs=0.3)
    assert found.weights["noise"] == pytest.approx(0.0, abs=0.15)
    assert found.weights["always"] == 0.0
    assert found.bias == pytest.approx(-1.0, abs=0.2)
    assert found.probability({"a": 1.0, "noise": 0.0, "always": 1.0}) == pytest.approx(0.88, abs=0.03)


def test_what_divides_the_examples_completely_still_gets_finite_weights() -> None:
    features = [{"a": float(at)} for at in range(-10, 10)]
    found = fit(("a",), features, [row["a"] >= 0 for row in features], [str(at) for at in range(20)])
    assert math.isfinite(found.regression.weights["a"])
    assert found.regression.weights["a"] > 0


def test_nothing_is_learnt_from_one_kind() -> None:
    with pytest.raises(ValueError, match="one kind"):
        fit(("a",), [{"a": 1.0}] * 3, [True] * 3, ["x", "y", "z"])


def test_examples_of_one_request_share_a_fold() -> None:
    """Every example comes twice: with its twin in another fold, what was left out would look known."""
    features, right = _coins(60)
    groups = [str(at) for at in range(60)] * 2
    twice = fit(("a", "noise", "always"), features * 2, right * 2, groups, strengths=(1.0,))
    assert twice.left_out[:60] == pytest.approx(twice.left_out[60:])


TOOLS = tuple(ToolCard(name=name) for name in "abc")


def _search(at: int, random: np.random.Generator, *, servable: bool) -> Searched:
    """The surer the search is of its only tool, the likelier it is right; of no tool it is surer without one."""
    sure = float(np.clip(random.beta(3, 1), 0.01, 0.99))
    stop = float(random.uniform(0.05, 0.6) if not servable else random.uniform(0.0, 0.1))
    right = TOOLS[0].name if random.random() < sure else TOOLS[1].name
    hypotheses = tuple(
        Hypothesis(
            tools=(tool,),
            log_probability=math.log(share),
            candidates=(((tool, share), (2, 0.01)),),
            step_log_probabilities=(math.log(share), 0.0),
            stop_probabilities=(stop, 1.0),
            relevance=(1.0,),
        )
        for tool, share in ((0, sure), (1, 1 - sure))
    )
    steps = (GoldStep(tool=right),) if servable else ()
    example = Example(source="s", id=str(at), request="r", tools=TOOLS, steps=steps)
    return Searched(example=example, hypotheses=hypotheses)


def test_thresholds_keep_their_promises_on_what_was_left_out() -> None:
    random = np.random.default_rng(4)
    seen = Observations()
    for at in range(1_200):
        seen.searches.append(_search(at, random, servable=at % 4 != 0))
        seen.arguments.add({"log_odds": float(random.normal())}, bool(random.random() < 0.5), str(at))
    confidence, report = fitted(seen, CalibrationConfig())
    assert report["refusals"]["refused"] >= 75
    assert report["refusals"]["refused_wrongly"] <= 5
    assert report["accepted"]["precision"] >= 95
    assert 20 < report["accepted"]["coverage"] < 90
    assert report["plan"]["calibration_error"] < 0.08
    unservable, servable = seen.searches[0], next(one for one in seen.searches if one.example.steps)
    assert confidence.of_nothing(unservable.hypotheses, tools=3) > confidence.of_nothing(
        servable.hypotheses, tools=3
    )
    refused = [
        not confidence.settled(one.hypotheses, tools=3)[0].tools for one in seen.searches if not one.example.steps
    ]
    assert sum(refused) > 0.7 * len(refused)


class _Scripted:
    """Always plans the first tool of the registry, and fills what it was told to."""

    def __init__(self, arguments: Mapping[str, Filled]) -> None:
        self._arguments = arguments

    def plans(self, example: Example, links: object) -> tuple[Hypothesis, ...]:
        return (
            Hypothesis(
                tools=(0,),
                log_probability=-0.1,
                candidates=(((0, 0.9), (1, 0.05)),),
                step_log_probabilities=(-0.1, 0.0),
                stop_probabilities=(0.1, 1.0),
                relevance=(1.0,),
            ),
        )

    def filled(self, example: Example, steps: Sequence[ToolCard]) -> tuple[FilledStep, ...]:
        return tuple(FilledStep(arguments=self._arguments) for _ in steps)


def test_what_was_right_is_noted() -> None:
    schema = {"properties": {name: {"type": "string"} for name in ("day", "city", "seat", "from")}}
    tools = tuple(ToolCard(name=name, input_schema=schema) for name in "ab")
    right = GoldStep(tool="a", arguments={"day": "May 1", "city": "Rome", "from": {"step": 0, "field": "id"}})
    accepting = GoldStep(tool="b", accept={"day": ("may 1", "1 May"), "city": ("Rome",)})
    arguments = {
        "day": Filled(argument=Literal(value="MAY 1."), confidence=0.9, span=None),
        "city": Filled(argument=Literal(value="Paris"), confidence=0.4, span=None),
        "seat": Filled(argument=Literal(value="4A"), confidence=0.3, span=None),
        "from": Filled(argument=StepRef(step=0, field="id"), confidence=0.8, span=None),
    }
    observer = Observer(_Scripted(arguments))
    for step in (right, accepting):
        example = Example(source="s", id=step.tool, request="r", tools=tools, steps=(step,))
        observer.plan(example)
        observer.fill(example)
    seen = observer.seen
    plans, steps = decisions(seen.searches)
    assert (plans.right, plans.groups) == ([True, False], ["s/a", "s/b"])
    assert steps.right == [True, False]
    assert seen.arguments.right == [True, False, False, True, True, False, False, False]
    assert plans.features[0]["log_tools"] == pytest.approx(math.log(2))


def test_a_request_without_its_tools_has_the_empty_plan() -> None:
    tools = tuple(ToolCard(name=name) for name in "abc")
    example = Example(source="s", id="1", request="r", tools=tools, steps=(GoldStep(tool="b"), GoldStep(tool="b")))
    left = without_its_tools(example)
    assert [card.name for card in left.tools] == ["a", "c"]
    assert left.tool_set == frozenset()


def test_a_ranking_learns_what_the_right_plans_have_in_common() -> None:
    """The search prefers single tools, and the right plan is always the pair."""
    random = np.random.default_rng(9)
    searches = []
    for at in range(60):
        single, pair = sorted(random.uniform(-3.0, -0.1, 2))[::-1]
        hypotheses = tuple(
            Hypothesis(
                tools=tools,
                log_probability=float(share),
                candidates=(((0, 0.5),),) * len(tools),
                step_log_probabilities=(float(share) / len(tools),) * len(tools) + (0.0,),
                stop_probabilities=(0.01, 0.9, 0.9)[: len(tools) + 1],
                relevance=(1.0,) * len(tools),
            )
            for tools, share in (((0,), single), ((0, 1), pair))
        )
        steps = (GoldStep(tool="a"), GoldStep(tool="b"))
        example = Example(source="s", id=str(at), request="r", tools=TOOLS, steps=steps)
        searches.append(Searched(example=example, hypotheses=hypotheses))
    found = fit_ranking(searches, seed=1)
    for one, left_out in zip(searches, found.left_out, strict=True):
        first, second = one.hypotheses
        assert left_out.score(second) > left_out.score(first)
    nothing = [Searched(example=replace(one.example, steps=()), hypotheses=one.hypotheses) for one in searches]
    assert fit_ranking(nothing, seed=1).ranking.weights["log_probability"] == pytest.approx(1.0)

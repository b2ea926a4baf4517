"""The hybrid planner: who is asked in which order, whose plan is taken, and what is said of the others."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from conductor.errors import NoPlan
from conductor.hybrid_planner import HybridPlanner
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.route import RouteEntry, route_of
from conductor.rules_planner import RulesPlanner
from conductor.thresholds import (
    GivenThresholds,
    PlanThresholds,
    PlanThresholdsInvalid,
    TenantThresholds,
    model_thresholds,
)
from podium.errors import InternalError, StorageFull
from tests.fakes.planners import SurePlanner, sure
from tests.unit.conductor.test_planner import revision, rule, situation, tools

STEPS = [{"tool": "browse", "arguments": {"topic": {"request": "text"}}}]
LIMITS = PlanThresholds(run=0.8, ask_person=0.4, rules=0.5)


def hybrid(policy: SurePlanner, *rules: Any, limits: PlanThresholds = LIMITS) -> HybridPlanner:
    return HybridPlanner(RulesPlanner(rules, [revision()]), policy, lambda tenant, model: limits)


def propose(planner: HybridPlanner, where: Situation) -> Proposal:
    return asyncio.run(planner.propose(where))


def taken(proposal: Proposal) -> list[tuple[str, bool]]:
    return [(entry.planner, entry.taken) for entry in proposal.route]


def test_a_rule_that_fits_is_followed_and_nobody_else_is_asked() -> None:
    policy = SurePlanner(sure(STEPS, 0.99))
    proposal = propose(hybrid(policy, rule("a")), situation())
    assert (proposal.planner, proposal.origin, proposal.for_person) == ("rules", "a", False)
    assert policy.asked == []
    [entry] = proposal.route
    assert entry == RouteEntry(
        planner="rules", taken=True, reason="the rule a fits", confidence=0.9, threshold=0.5
    )


@pytest.mark.parametrize(
    ("confidence", "planner", "for_person"),
    [
        (1.0, "policy", False),
        (0.8, "policy", False),
        (0.79, "policy", True),
        (0.4, "policy", True),
        (0.39, "rules", False),
        (0.0, "rules", False),
    ],
)
def test_where_no_rule_fits_the_trained_planners_confidence_decides(
    confidence: float, planner: str, for_person: bool
) -> None:
    proposal = propose(hybrid(SurePlanner(sure(STEPS, confidence)), rule("no", "false")), situation())
    assert (proposal.planner, proposal.for_person) == (planner, for_person)
    assert tools(proposal) == (["browse"] if planner == "policy" else ["clarify"])
    asked = confidence < 0.4
    assert taken(proposal) == [("rules", asked), ("policy", confidence >= 0.8)]
    assert proposal.route[1].confidence == confidence
    assert proposal.route[1].threshold == (0.4 if asked else 0.8)
    assert "no plan rule fits" in proposal.route[0].reason


def test_words_that_hold_a_rule_back_are_asked_about_and_not_guessed() -> None:
    policy = SurePlanner(sure(STEPS, 1.0))
    unclear = situation(unresolved=[{"text": "Atlantis", "kind": "place"}])
    # A rule may say itself that everything must be understood, as that of the sales pack does.
    demanding = propose(hybrid(policy, rule("a", "size(request.unresolved) == 0")), unclear)
    assert (tools(demanding), demanding.planner) == (["clarify"], "rules")
    proposal = propose(hybrid(policy, rule("a")), unclear)
    assert tools(proposal) == ["clarify"]
    assert policy.asked == []
    assert taken(proposal) == [("rules", True)]
    assert "Atlantis" in proposal.route[0].reason


def test_words_outside_what_rules_speak_of_do_not_keep_the_trained_planner_out() -> None:
    unclear = situation(unresolved=[{"text": "Atlantis", "kind": "place"}])
    proposal = propose(hybrid(SurePlanner(sure(STEPS, 0.9)), rule("no", "false")), unclear)
    assert (tools(proposal), proposal.planner) == (["browse"], "policy")
    unsure = propose(hybrid(SurePlanner(sure(STEPS, 0.1)), rule("no", "false")), unclear)
    assert (tools(unsure), unsure.planner) == (["clarify"], "rules")
    assert unsure.reason == "not understood: Atlantis"


def test_a_request_that_no_agent_can_serve_is_asked_back_by_the_trained_planner() -> None:
    proposal = propose(hybrid(SurePlanner(), rule("no", "false")), situation())
    assert (tools(proposal), proposal.planner, proposal.for_person) == (["clarify"], "policy", False)
    assert taken(proposal) == [("rules", False), ("policy", True)]


def test_without_anybody_to_ask_the_caller_there_is_no_plan_and_it_says_what_each_planner_said() -> None:
    alone = situation(without=("clarify",))
    for policy in (SurePlanner(), SurePlanner(sure(STEPS, 0.1))):
        with pytest.raises(NoPlan) as caught:
            propose(hybrid(policy, rule("no", "false")), alone)
        assert [line.split(" ")[0].rstrip(":") for line in caught.value.evidence] == ["rules", "policy"]
    # What may run runs, and a person may still be asked.
    assert propose(hybrid(SurePlanner(sure(STEPS, 0.9)), rule("no", "false")), alone).planner == "policy"
    assert propose(hybrid(SurePlanner(sure(STEPS, 0.5)), rule("no", "false")), alone).for_person
    where = situation(without=("clarify",), unresolved=[{"text": "Atlantis"}])
    with pytest.raises(NoPlan, match="Atlantis"):
        propose(hybrid(SurePlanner(sure(STEPS, 1.0)), rule("a")), where)


def test_a_rule_whose_agents_failed_gives_way_to_the_trained_planner_and_else_to_nobody() -> None:
    gone = situation(avoid=("fetch", "browse", "twin"))
    steps = [{"tool": "odd", "arguments": {"topic": 1}}]
    assert propose(hybrid(SurePlanner(sure(steps, 0.9)), rule("a")), gone).planner == "policy"
    with pytest.raises(NoPlan, match="which failed or do not serve") as caught:
        propose(hybrid(SurePlanner(sure(steps, 0.1)), rule("a")), gone)
    assert "0.10 sure" in caught.value.evidence[1]


def test_a_rule_that_is_not_sure_enough_leaves_it_to_the_surer_of_the_two() -> None:
    weak = rule("weak", confidence=0.45)
    ran = propose(hybrid(SurePlanner(sure(STEPS, 0.85)), weak), situation())
    assert (ran.planner, taken(ran)) == ("policy", [("rules", False), ("policy", True)])
    assert ran.route[0].threshold == 0.5
    for_person = propose(hybrid(SurePlanner(sure(STEPS, 0.41)), weak), situation())
    assert (for_person.planner, for_person.origin, for_person.for_person) == ("rules", "weak", True)
    neither = propose(hybrid(SurePlanner(), rule("weaker", confidence=0.1)), situation())
    assert tools(neither) == ["clarify"]


def test_a_trained_planner_that_is_not_there_leaves_the_rules_as_they_are_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = SurePlanner(fails_with=StorageFull("no room for the model"))
    assert propose(hybrid(policy, rule("a")), situation()).planner == "rules"
    asked = propose(hybrid(policy, rule("no", "false")), situation())
    assert tools(asked) == ["clarify"]
    assert "not available, STORAGE_FULL" in asked.route[1].reason
    assert "STORAGE_FULL" in caplog.text
    assert "no room" not in caplog.text


def test_a_trained_planner_that_breaks_is_a_trained_planner_that_is_not_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(SurePlanner):
        async def propose(self, situation: Situation) -> Proposal:
            raise OverflowError("a secret of the request")

    asked = propose(hybrid(Broken(), rule("no", "false")), situation())
    assert tools(asked) == ["clarify"]
    assert "not available, INTERNAL_ERROR: it failed with OverflowError" in asked.route[1].reason
    assert "the planner policy failed" in caplog.text


def test_thresholds_that_cannot_be_read_let_nothing_of_the_trained_planner_run() -> None:
    def broken(tenant: str, model: PlanThresholds | None) -> PlanThresholds:
        raise PlanThresholdsInvalid("no thresholds")

    planner = HybridPlanner(RulesPlanner([rule("no", "false")]), SurePlanner(sure(STEPS, 0.99)), broken)
    assert tools(propose(planner, situation())) == ["clarify"]
    follows = HybridPlanner(RulesPlanner([rule("a")]), SurePlanner(), broken)
    assert propose(follows, situation()).planner == "rules"


def revise(planner: HybridPlanner, total: float) -> Proposal | None:
    finished = FinishedStep(tool="fetch", output={"total": total})
    return asyncio.run(planner.revise(situation(), finished, origins_used=frozenset()))


def test_revisions_of_packs_come_first_then_the_trained_planner_where_it_is_sure() -> None:
    by_pack = revise(hybrid(SurePlanner(revision=sure(STEPS, 0.9))), -1.0)
    assert by_pack is not None
    assert (by_pack.planner, by_pack.origin) == ("revision", "look_again")
    assert taken(by_pack) == [("rules", True)]
    trained = revise(hybrid(SurePlanner(revision=sure(STEPS, 0.9))), 1.0)
    assert trained is not None
    assert taken(trained) == [("policy", True)]
    assert revise(hybrid(SurePlanner(revision=sure(STEPS, 0.7))), 1.0) is None
    assert revise(hybrid(SurePlanner()), 1.0) is None
    assert revise(hybrid(SurePlanner(fails_with=InternalError("broken"))), 1.0) is None


def test_tenants_have_their_own_thresholds_over_everybodys_over_the_models() -> None:
    given = {"default": GivenThresholds(run=0.7), "acme": GivenThresholds(ask_person=0.75, rules=0.2)}
    thresholds = TenantThresholds(given, lambda: PlanThresholds(run=0.9, ask_person=0.3))
    assert thresholds("somebody") == PlanThresholds(run=0.7, ask_person=0.3)
    # Only ask_person is acme's own: what runs must not be less sure than that.
    assert thresholds("acme") == PlanThresholds(run=0.75, ask_person=0.75, rules=0.2)
    assert GivenThresholds(run=0.1).over(PlanThresholds()) == PlanThresholds(run=0.1, ask_person=0.1)
    planner = HybridPlanner(RulesPlanner([]), SurePlanner(sure(STEPS, 0.72)), thresholds)
    for tenant, for_person in (("somebody", False), ("acme", False)):
        where = Situation(
            request=situation().request, registry=situation().registry, caller=situation().caller, tenant=tenant
        )
        proposal = propose(planner, where)
        assert (tools(proposal), proposal.for_person) == (
            (["browse"], for_person) if tenant == "somebody" else (["clarify"], for_person)
        )


@pytest.mark.parametrize(
    ("made_by", "takes_over", "planner", "for_person"),
    [
        (PlanThresholds(run=0.9, ask_person=0.5), PlanThresholds(run=0.1, ask_person=0.0), "policy", True),
        (PlanThresholds(run=0.6, ask_person=0.5), PlanThresholds(run=0.95, ask_person=0.9), "policy", False),
        (PlanThresholds(run=0.95, ask_person=0.8), PlanThresholds(run=0.1, ask_person=0.0), "conductor", False),
    ],
)
def test_a_plan_is_held_against_the_thresholds_of_the_model_that_made_it(
    made_by: PlanThresholds, takes_over: PlanThresholds, planner: str, for_person: bool
) -> None:
    serving = [replace(made_by, rules=0.3)]

    class Replaced(SurePlanner):
        async def propose(self, situation: Situation) -> Proposal:
            made = replace(await super().propose(situation), thresholds=made_by)
            serving[:] = [replace(takes_over, rules=0.99)]
            return made

    thresholds = TenantThresholds({}, lambda: serving[0])
    unsure = HybridPlanner(RulesPlanner([rule("weak", confidence=0.1)]), Replaced(sure(STEPS, 0.7)), thresholds)
    proposal = propose(unsure, situation())
    assert (proposal.planner, proposal.for_person) == (planner, for_person)
    assert proposal.route[0].threshold == 0.3, "the one that the rule was held against"
    assert proposal.route[1].threshold == (made_by.run if planner == "policy" else made_by.ask_person)


def test_what_an_operator_set_holds_for_whichever_model_made_the_plan() -> None:
    thresholds = TenantThresholds({"acme": GivenThresholds(run=0.7)}, lambda: PlanThresholds(run=0.9))
    made_by = PlanThresholds(run=0.6, ask_person=0.2)
    assert thresholds("acme", made_by) == PlanThresholds(run=0.7, ask_person=0.2)
    assert thresholds("somebody", made_by) == made_by


@pytest.mark.parametrize(
    ("run", "ask_person"), [(1.1, 0.5), (0.5, -0.1), (float("nan"), 0.5), (0.4, 0.5), (float("inf"), 0.5)]
)
def test_thresholds_that_cannot_be_are_refused(run: float, ask_person: float) -> None:
    with pytest.raises(PlanThresholdsInvalid):
        PlanThresholds(run=run, ask_person=ask_person)


def test_the_models_thresholds_come_with_it() -> None:
    written = {"thresholds": json.dumps({"run": 0.83, "ask_person": 0.31})}
    assert model_thresholds(written, accept_at=0.9) == PlanThresholds(run=0.83, ask_person=0.31)
    assert model_thresholds({}, accept_at=0.9) == PlanThresholds(run=0.9, ask_person=0.45)
    assert model_thresholds({"thresholds": '{"run": 0.6}'}, accept_at=0.9).ask_person == 0.3
    for damaged in ("[1]", "7", "{", '{"run": "much"}', '{"run": 2}', '{"run": 0.2, "ask_person": 0.9}'):
        with pytest.raises(PlanThresholdsInvalid):
            model_thresholds({"thresholds": damaged}, accept_at=0.9)


def test_a_route_travels_whole() -> None:
    route = (
        RouteEntry(planner="rules", taken=False, reason="no plan rule fits"),
        RouteEntry(planner="policy", taken=True, reason="sure enough to run", confidence=0.0, threshold=0.0),
    )
    assert route_of(entry.to_proto() for entry in route) == route
    assert route[0].words == "rules: no plan rule fits"
    assert route[1].words == "policy (0.00 sure, 0.00 needed): sure enough to run"

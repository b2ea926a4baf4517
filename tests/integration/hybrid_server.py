"""A server whose trained planner knows four words; as a program, `podium` with that planner."""

from typing import Any

from cloud import planners
from cloud.settings import Settings
from cloud.specialists import Specialists
from conductor.hybrid_planner import HybridPlanner
from conductor.planner import Planner
from conductor.thresholds import PlanThresholds, TenantThresholds
from tests.fakes.planners import RELAY_PLANS, WordedPlanner


def worded(settings: Settings, specialists: Specialists, trained: Any) -> Planner:
    """In the place of `cloud.planners.planner_of`."""
    given = {tenant: table.given for tenant, table in settings.plan_thresholds.items()}
    thresholds = TenantThresholds(given, PlanThresholds)
    return HybridPlanner(specialists.planner, WordedPlanner(RELAY_PLANS), thresholds)


if __name__ == "__main__":
    from podium.cli import main

    planners.planner_of = worded
    main()

"""The settings of planning: which planner, and how sure it must be for whom."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from conductor.thresholds import GivenThresholds

PlannerName = Literal["hybrid", "rules", "policy"]
"""Rules first and then the trained planner; the rules of packs alone; the trained planner alone."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TenantPlanning(BaseModel):
    """What one tenant's plans are compared with; what is left out is everybody's, or else the model's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: Share | None = None
    ask_person: Share | None = None
    rules: Share | None = None

    @model_validator(mode="after")
    def _a_person_is_asked_below_what_runs(self) -> "TenantPlanning":
        if self.run is not None and self.ask_person is not None and self.ask_person > self.run:
            raise ValueError(
                f"ask_person {self.ask_person:g} is above run {self.run:g}; a plan that runs asks nobody"
            )
        return self

    @property
    def given(self) -> GivenThresholds:
        """The same as the planner takes it."""
        return GivenThresholds(run=self.run, ask_person=self.ask_person, rules=self.rules)


def _parsed(value: Any) -> Any:
    """A variable of the environment holds JSON; a settings file holds tables."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else {}
    except ValueError as error:
        raise ValueError(f'a JSON object such as {{"default": {{"run": 0.8}}}} is needed: {error}') from error


PlanThresholdsByTenant = Annotated[Mapping[str, TenantPlanning], BeforeValidator(_parsed)]
"""By tenant; `default` is everybody who has no table of their own."""

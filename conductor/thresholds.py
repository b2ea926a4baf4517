"""How sure planners must be: from where on a plan runs, and from where on a person is asked before it does.

The trained planner brings its own thresholds, calibrated on requests that it was not trained on; the settings may
put others in their place, for everybody or for one tenant.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from podium.errors import InvalidRequest

METADATA_KEY = "thresholds"
"""Where a planner's model holds its own, JSON `{"run", "ask_person"}`."""
DEFAULT_TENANT = "default"
"""Whose thresholds hold for every tenant that has none of its own."""


class PlanThresholdsInvalid(InvalidRequest):
    """Thresholds of planning that cannot be."""

    code = "PLAN_THRESHOLDS_INVALID"
    advice = "Give run, ask_person and rules between 0 and 1, ask_person not above run."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanThresholds:
    """What a plan's confidence is compared with; all in [0, 1]."""

    run: float = 0.8
    """From here on a plan of the trained planner runs."""
    ask_person: float = 0.4
    """From here on, below `run`, a person is asked for the plan; below it the caller is asked."""
    rules: float = 0.5
    """From here on a plan of a rule that fits runs."""

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            PlanThresholdsInvalid: a value is not in [0, 1], or a person would be asked above what runs by itself.
        """
        for field in fields(self):
            _checked(field.name, getattr(self, field.name))
        if self.ask_person > self.run:
            raise PlanThresholdsInvalid(
                f"ask_person is {self.ask_person:g} and run {self.run:g}: a plan that runs asks nobody",
                field="ask_person",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenThresholds:
    """What an operator set; None leaves a threshold as it is."""

    run: float | None = None
    ask_person: float | None = None
    rules: float | None = None

    def over(self, base: PlanThresholds) -> PlanThresholds:
        """`base` with the given ones in their place.

        Where only one of `run` and `ask_person` is given, the other gives way to it.

        Raises:
            PlanThresholdsInvalid: the two given contradict each other, or one is not in [0, 1].
        """
        run = base.run if self.run is None else self.run
        ask_person = base.ask_person if self.ask_person is None else self.ask_person
        if self.run is None:
            run = max(run, ask_person)
        elif self.ask_person is None:
            ask_person = min(run, ask_person)
        rules = base.rules if self.rules is None else self.rules
        return PlanThresholds(run=run, ask_person=ask_person, rules=rules)


class TenantThresholds:
    """The thresholds that hold for a tenant: its own, over those for everybody, over the model's."""

    def __init__(self, given: Mapping[str, GivenThresholds], model: Callable[[], PlanThresholds]) -> None:
        """Use what an operator set.

        Args:
            given: by tenant; `DEFAULT_TENANT` is everybody else.
            model: those of the model that serves now, for what no model planned; asked anew each time, because
                another model may be promoted meanwhile.
        """
        self._given = dict(given)
        self._model = model

    def __call__(self, tenant: str, model: PlanThresholds | None = None) -> PlanThresholds:
        """The thresholds for a tenant.

        Args:
            tenant: Whose request it is.
            model: Those of the model that made the plan, which may have been replaced since; None: of the one
                that serves.

        Raises:
            PlanThresholdsInvalid: those given contradict each other.
        """
        everybody = self._given.get(DEFAULT_TENANT, GivenThresholds()).over(
            self._model() if model is None else model
        )
        return self._given[tenant].over(everybody) if tenant in self._given else everybody


def model_thresholds(properties: Mapping[str, str], *, accept_at: float) -> PlanThresholds:
    """The thresholds that a planner's model was calibrated to.

    Args:
        properties: the model's metadata.
        accept_at: from where on its plans were right in 95 of 100 cases; counts where the metadata say nothing.

    Raises:
        PlanThresholdsInvalid: the metadata hold something else than thresholds.
    """
    written = properties.get(METADATA_KEY)
    if not written:
        return PlanThresholds(run=accept_at, ask_person=accept_at / 2)
    try:
        value: Any = json.loads(written)
        if not isinstance(value, dict):
            raise TypeError("an object is needed")
        known = {field.name: float(value[field.name]) for field in fields(PlanThresholds) if field.name in value}
    except (TypeError, ValueError) as error:
        raise PlanThresholdsInvalid(f"the model's thresholds are none: {error}", field=METADATA_KEY) from error
    run = known.get("run", accept_at)
    return PlanThresholds(**{"run": run, "ask_person": run / 2} | known)


def _checked(name: str, value: float) -> None:
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise PlanThresholdsInvalid(f"{name} is {value}, not in [0, 1]", field=name)

"""A question about data in structured form, and the queries that answer it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from podium.errors import InputContractBroken
from tools.sql.intent import Change, Filter, Granularity, Interval, Order, SemanticQuery
from tools.sql.model import SemanticModel

Kind = Literal["values", "changes", "share"]
Comparison = Literal["previous_period", "same_period_last_year"] | Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    `values`: measures by member or in total; `changes`: the members that changed enough, with the totals they
    belong to; `share`: each member's part of the whole.
    """

    kind: Kind
    measures: tuple[str, ...]
    dimension: str | None
    """What the members are, e.g. `city`; none for one total."""
    filters: tuple[Filter, ...]
    interval: Interval
    comparison: Comparison | None = None
    change: Change | None = None
    granularity: Granularity | None = None
    descending: bool = True
    limit: int | None = None

    @classmethod
    def from_json(cls, intent: Mapping[str, Any]) -> "Question":
        """Read a complete intent.

        Raises:
            InputContractBroken: it is not complete or contradicts itself.
        """
        try:
            return cls(
                kind=intent["kind"],
                measures=tuple(intent["measures"]),
                dimension=intent["dimension"],
                filters=tuple(Filter.model_validate(part) for part in intent["filters"]),
                interval=Interval.model_validate(intent["interval"]),
                comparison=_comparison(intent["comparison"]),
                change=Change.model_validate(intent["change"]) if intent["change"] else None,
                granularity=intent["granularity"],
                descending=intent["descending"],
                limit=intent["limit"],
            )
        except (KeyError, TypeError, ValidationError) as error:
            raise InputContractBroken(
                f"the intent is not complete: {error}",
                next_step="Let clarify ask for what is missing; the parser lists it.",
            ) from error

    def queries(self, model: SemanticModel) -> dict[str, SemanticQuery]:
        """The queries whose results together are the answer, by purpose: `members`, `totals`, `whole`.

        Raises:
            InputContractBroken: the parts of the question do not make a query.
            UnknownName: it names a dimension that does not exist.
        """
        if not self.measures:
            raise InputContractBroken("the intent asks for no measure", next_step="Let clarify ask for one.")
        try:
            return self._queries(model)
        except ValidationError as error:
            raise InputContractBroken(f"the intent does not make a query: {error}") from error

    def _queries(self, model: SemanticModel) -> dict[str, SemanticQuery]:
        match self.kind:
            case "changes":
                return {"totals": self._totals(), "members": self._members(model)}
            case "share":
                whole = tuple(part for part in self.filters if part.dimension != self.dimension)
                return {
                    "members": self._values(),
                    "whole": SemanticQuery(measures=self.measures, filters=whole, interval=self.interval),
                }
            case _:
                return {"members": self._values()}

    def compared_dimensions(self) -> tuple[str, ...]:
        """Dimensions that the question sets side by side: filters with several values."""
        return tuple(
            dict.fromkeys(
                part.dimension
                for part in self.filters
                if part.operator == "in" and len(part.values) > 1 and part.dimension != self.dimension
            )
        )

    def _dimensions(self) -> tuple[str, ...]:
        return (self.dimension,) if self.dimension else ()

    def _values(self) -> SemanticQuery:
        order: tuple[Order, ...] = ()
        # Periods stand in their own order, unless the highest of them are asked for.
        ranked = self.limit is not None if self.granularity else self.dimension is not None
        if ranked:
            part: Literal["value", "current"] = "current" if self.comparison else "value"
            order = (Order(by=self.measures[0], part=part, descending=self.descending),)
        return self._query(self._dimensions(), order=order, limit=self.limit)

    def _members(self, model: SemanticModel) -> SemanticQuery:
        # Members stand under what they belong to: a city under its region, but a product under no region.
        above = tuple(name for name in self.compared_dimensions() if belongs_to(model, self.dimension, name))
        rising = self.change is not None and self.change.direction == "up"
        # The largest change first, unless the smallest was asked for.
        order = (Order(by=self.measures[0], part="change", descending=rising == self.descending),)
        return self._query((*above, *self._dimensions()), change=self.change, order=order, limit=self.limit)

    def _totals(self) -> SemanticQuery:
        compared = self.compared_dimensions()
        order = tuple(Order(by=name) for name in compared)
        return self._query(compared, order=order)

    def _query(
        self,
        dimensions: tuple[str, ...],
        *,
        change: Change | None = None,
        order: tuple[Order, ...] = (),
        limit: int | None = None,
    ) -> SemanticQuery:
        return SemanticQuery(
            measures=self.measures,
            dimensions=dimensions,
            filters=self.filters,
            interval=self.interval,
            comparison=self.comparison,
            change=change,
            granularity=self.granularity,
            order=order,
            limit=limit,
        )


def _comparison(value: Any) -> Comparison | None:
    return Interval.model_validate(value) if isinstance(value, Mapping) else value


def belongs_to(model: SemanticModel, member: str | None, group: str) -> bool:
    """Whether each member of a dimension is in one group of another, as a city is in one region.

    True when the joins reach the group's table through the member's column.
    """
    if member is None or member == group:
        return False
    lower, upper = model.dimension(member).column, model.dimension(group).column
    if lower is None or upper is None:
        return False
    steps = model.joins_to(upper.split(".")[0])
    return bool(steps) and lower in (steps[0].many, *(step.one for step in steps))

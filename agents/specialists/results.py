"""The results of a question with their meaning: rows by column role, and the typed fields of the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from agents.specialists.question import Question
from agents.specialists.wording import label
from podium.errors import InputContractBroken
from tools.sql.intent import Interval
from tools.sql.model import SemanticModel
from tools.sql.shape import COMPARED

Row = Mapping[str, Any]
_SHARE_DIGITS = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What the queries of one question gave, by purpose (`members`, `totals`, `whole`)."""

    question: Question
    model: SemanticModel
    tables: Mapping[str, Sequence[Row]]
    source_ids: Mapping[str, str]
    """Which source each table came from."""
    sources: Sequence[dict[str, Any]]

    @classmethod
    def read(
        cls,
        question: Question,
        model: SemanticModel,
        results: Sequence[Mapping[str, Any]],
        statements: Sequence[Mapping[str, Any]],
        sources: Sequence[Mapping[str, Any]],
    ) -> "Results":
        """Put results, statements and sources (all in one order) together.

        Raises:
            InputContractBroken: they are not of one question.
        """
        purposes = [result["purpose"] for result in results]
        expected = list(question.queries(model))
        if (
            purposes != expected
            or purposes != [part["purpose"] for part in statements]
            or len(sources) < len(results)
        ):
            raise InputContractBroken(f"results {purposes} do not answer a question that needs {expected}")
        if any(len(row) != len(result["columns"]) for result in results for row in result["rows"]):
            raise InputContractBroken("a result has rows that are not as long as its header")
        return cls(
            question=question,
            model=model,
            tables={
                result["purpose"]: [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
                for result in results
            },
            source_ids={purpose: f"S{number}" for number, purpose in enumerate(purposes, start=1)},
            sources=[
                {**source, "id": f"S{number}"} for number, source in enumerate(sources[: len(results)], start=1)
            ],
        )

    @property
    def measure(self) -> str:
        """The first measure: changes, ranks and shares are of it."""
        return self.question.measures[0]

    @property
    def base(self) -> Interval | None:
        """The days that are compared with."""
        return next(iter(self.question.queries(self.model).values())).base_interval()

    def members(self) -> list[Row]:
        """The member rows that can be told: with a comparison only those that could be compared."""
        return [row for row in self.tables["members"] if self._comparable(row)]

    def not_comparable(self) -> list[Row]:
        """Members that could not be compared, e.g. a city that sold nothing in the period before."""
        return [row for row in self.tables["members"] if not self._comparable(row)]

    def totals(self) -> list[Row]:
        """The totals that the members belong to."""
        return list(self.tables.get("totals", ()))

    def share(self, row: Row) -> Decimal | None:
        """A member's part of the whole, rounded half up to six decimals; None where the whole is nothing."""
        whole = self.tables["whole"][0][self.measure]
        if whole is None or Decimal(str(whole)) <= 0 or row[self.measure] is None:
            return None
        exact = Fraction(str(row[self.measure])) / Fraction(str(whole))
        return (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(_SHARE_DIGITS, ROUND_HALF_UP)

    def names(self, row: Row, language: str) -> list[str]:
        """What people call the members of a row, the most particular last."""
        return [
            label(self.model, name, row[name], language)
            for name in row
            if name in self.model.dimensions and name != self.question.granularity
        ]

    def fields(self, language: str) -> dict[str, Any]:
        """The answer as typed fields; decimals are text."""
        question = self.question
        base = self.base
        return {
            "kind": question.kind,
            "measures": list(question.measures),
            "unit": self.model.measure(self.measure).unit,
            "dimension": question.dimension,
            "interval": question.interval.model_dump(mode="json"),
            "base_interval": base.model_dump(mode="json") if base else None,
            "direction": question.change.direction if question.change else None,
            "threshold": format(question.change.threshold, "f") if question.change else None,
            "rows": [self._typed(row, language) for row in self.members()],
            "totals": [self._typed(row, language) for row in (*self.totals(), *self.tables.get("whole", ()))],
            "not_comparable": [self._typed(row, language) for row in self.not_comparable()],
        }

    def _comparable(self, row: Row) -> bool:
        return self.question.comparison is None or row[f"{self.measure}_status"] == COMPARED

    def _typed(self, row: Row, language: str) -> dict[str, Any]:
        typed = dict(row)
        for name in row:
            if name in self.model.dimensions and name != self.question.granularity:
                typed[f"{name}_label"] = label(self.model, name, row[name], language)
        if self.question.kind == "share" and self.question.dimension in row:
            share = self.share(row)
            typed["share"] = None if share is None else format(share, "f")
        return typed

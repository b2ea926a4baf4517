"""The semantic model: what the tables mean, read from YAML and checked before use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from tools.sql.errors import SemanticModelInvalid, UnknownName
from tools.sql.intent import Granularity

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
ColumnName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}\.[a-z][a-z0-9_]{0,62}$")]
Labels = Mapping[Literal["zh", "en"], str]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KnownValue(_Part):
    """A value of a dimension, with what people call it."""

    value: str
    labels: Labels
    synonyms: tuple[str, ...] = ()


class Join(_Part):
    """A many-to-one step: each row of the table of `many` has at most one partner in the table of `one`."""

    many: ColumnName
    one: ColumnName


class Dimension(_Part):
    """Something to group and filter by: a text column, or the period a row falls in."""

    column: ColumnName | None = None
    granularity: Granularity | None = None
    labels: Labels
    synonyms: tuple[str, ...] = ()
    values: tuple[KnownValue, ...] = ()

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.column is None) == (self.granularity is None):
            raise ValueError("a dimension has a column or a granularity, one of the two")
        return self


class Measure(_Part):
    """Something to compute: an aggregate of an expression over rows of the grain, or a ratio of two measures.

    Attributes:
        aggregate: How rows become one number.
        expression: Arithmetic (`+ - *`, parentheses, whole numbers) over columns of the grain table.
        numerator: Measure above the line of a ratio.
        denominator: Measure below it; the ratio is empty where this is not positive.
        scale: Digits after the decimal point that the value has; a ratio is rounded half away from zero to them.
        unit: What is counted, e.g. `CNY`.
    """

    labels: Labels
    synonyms: tuple[str, ...] = ()
    aggregate: Literal["sum", "count", "count_distinct", "min", "max"] | None = None
    expression: str | None = Field(default=None, pattern=r"^[a-z0-9_ +*()-]+$", max_length=500)
    numerator: str | None = None
    denominator: str | None = None
    scale: int = Field(ge=0, le=12)
    unit: str = ""

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio of two other measures."""
        return self.numerator is not None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        plain = self.aggregate is not None and self.expression is not None
        ratio = self.numerator is not None and self.denominator is not None
        given = [self.aggregate, self.expression, self.numerator, self.denominator]
        if plain == ratio or sum(part is not None for part in given) != 2:
            raise ValueError("a measure has aggregate and expression, or numerator and denominator")
        return self


class SemanticModel(_Part):
    """What the warehouse is about.

    Attributes:
        name: Name of the model.
        description: What it holds, in one sentence per language.
        grain: The table that measures are computed over, one row per event.
        time_column: The DATE column of the grain that intervals apply to.
        tables: Table names with what a row of each is.
        joins: How to reach other tables from the grain.
        dimensions: By name.
        measures: By name.
    """

    name: Identifier
    description: Labels
    grain: Identifier
    time_column: ColumnName
    tables: Mapping[Identifier, str]
    joins: tuple[Join, ...] = ()
    dimensions: Mapping[Identifier, Dimension]
    measures: Mapping[Identifier, Measure]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [*self._unknown_tables(), *self._broken_joins(), *self._broken_measures()]
        if both := sorted(set(self.dimensions) & set(self.measures)):
            problems.append(f"dimension and measure share the name {', '.join(both)}")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def dimension(self, name: str) -> Dimension:
        """The dimension of that name.

        Raises:
            UnknownName: There is none.
        """
        if name not in self.dimensions:
            raise UnknownName(kind="dimension", name=name, known=self.dimensions)
        return self.dimensions[name]

    def measure(self, name: str) -> Measure:
        """The measure of that name.

        Raises:
            UnknownName: There is none.
        """
        if name not in self.measures:
            raise UnknownName(kind="measure", name=name, known=self.measures)
        return self.measures[name]

    def joins_to(self, table: str) -> list[Join]:
        """The joins that lead from the grain to the table, in order; empty for the grain itself."""
        if table == self.grain:
            return []
        step = next(join for join in self.joins if join.one.split(".")[0] == table)
        return [*self.joins_to(step.many.split(".")[0]), step]

    def label(self, dimension: str, value: str, language: Literal["zh", "en"]) -> str:
        """What people call a value of a dimension, or the value itself where the model has no label."""
        for known in self.dimension(dimension).values:
            if known.value == value:
                return known.labels.get(language, value)
        return value

    def _unknown_tables(self) -> list[str]:
        columns = [self.time_column]
        columns += [dimension.column for dimension in self.dimensions.values() if dimension.column]
        columns += [side for join in self.joins for side in (join.many, join.one)]
        unknown = {column.split(".")[0] for column in columns} | {self.grain}
        problems = [f"table {table} is not declared" for table in sorted(unknown - set(self.tables))]
        if self.time_column.split(".")[0] != self.grain:
            problems.append("the time column is not in the grain table")
        return problems

    def _broken_joins(self) -> list[str]:
        reached = {self.grain}
        problems = []
        for join in self.joins:
            many, one = join.many.split(".")[0], join.one.split(".")[0]
            if many not in reached:
                problems.append(f"join to {one} starts at {many}, which no earlier join reaches")
            if one in reached:
                problems.append(f"table {one} is reached twice")
            reached.add(one)
        for name, dimension in self.dimensions.items():
            if dimension.column and dimension.column.split(".")[0] not in reached:
                problems.append(f"no join reaches the table of dimension {name}")
        return problems

    def _broken_measures(self) -> list[str]:
        problems = []
        for name, measure in self.measures.items():
            parts = filter(None, (measure.numerator, measure.denominator))
            unfit = [part for part in parts if part not in self.measures or self.measures[part].is_ratio]
            problems += [f"measure {name} needs {part}, which is not a plain measure" for part in unfit]
        return problems


def load_model(path: Path) -> SemanticModel:
    """Read a semantic model from YAML.

    Raises:
        SemanticModelInvalid: The file is not YAML, or its parts do not fit; every fault is listed.
    """
    try:
        return SemanticModel.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise SemanticModelInvalid([f"{path.name} is not YAML: {error}"]) from error
    except ValidationError as error:
        faults = [f"{'.'.join(str(step) for step in fault['loc'])}: {fault['msg']}" for fault in error.errors()]
        raise SemanticModelInvalid(faults) from error

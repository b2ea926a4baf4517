"""Rules that say which plan is made for which request; packs bring them, and so may a single agent."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tools.rules.errors import RuleError
from tools.rules.expression import CelRule


class _Template(BaseModel):
    """Steps in the plan's JSON form and which of them gives the answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: tuple[dict[str, Any], ...] = Field(min_length=1)
    answer: int = -1
    """Index of the step whose output is the answer; the last one when not given."""

    @field_validator("steps")
    @classmethod
    def _steps_name_tools(cls, steps: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        for index, step in enumerate(steps):
            if not isinstance(step.get("tool"), str):
                raise ValueError(f"step {index} names no tool")
            if unknown := set(step) - {"tool", "candidates", "arguments", "depends_on"}:
                raise ValueError(f"step {index} has unknown fields {sorted(unknown)}")
        return steps

    @model_validator(mode="after")
    def _answer_is_a_step(self) -> "_Template":
        if not -1 <= self.answer < len(self.steps):
            raise ValueError(f"answer {self.answer} is not one of {len(self.steps)} steps")
        return self

    @property
    def answer_step(self) -> int:
        """Index of the step whose output is the answer."""
        return len(self.steps) - 1 if self.answer == -1 else self.answer


class PlanRule(_Template):
    """When a request is of this kind, this is the plan."""

    name: str
    when: str
    """CEL over `request`, the normalised request."""
    confidence: float = Field(ge=0, le=1)
    priority: int = 0
    """Among rules that hold, the highest wins."""
    needs_words: bool = True
    """Whether the plan rests on the caller's words. One about a document does not: it runs even when the words
    beside the document are not understood."""

    @field_validator("when")
    @classmethod
    def _compiles(cls, when: str) -> str:
        return _compiled(when)


class OfferedPlan(PlanRule):
    """A plan that an agent brings along in its manifest; it counts while the agent serves, after all packs."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,63}$")
    confidence: float = Field(default=0.8, ge=0, le=1)
    needs_words: bool = False
    """False here: the words of an agent that comes alone are in no vocabulary, so `when` must look at the text."""


class RevisionRule(_Template):
    """When a step's output changes what should be done, this is the complete new plan."""

    name: str
    after: str
    """The tool whose output is looked at."""
    when: str
    """CEL over `request`, `output` and `device`."""
    reason: str
    """Why the plan changed, for the record."""

    @field_validator("when")
    @classmethod
    def _compiles(cls, when: str) -> str:
        return _compiled(when)


def _compiled(expression: str) -> str:
    try:
        CelRule.compile(expression)
    except RuleError as error:
        raise ValueError(str(error)) from error
    return expression

"""The one plan format: a graph of steps over agents and tools.

JSON form::

    {"steps": [{"tool", "candidates": [{"tool", "score"}],
                "arguments": {name: literal | {"request": path} | {"step": index, "field": path}},
                "depends_on": [index]}],
     "parallel_groups": [[index]], "confidence"}
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agents.canonical import canonical_json
from podium.errors import InvalidRequest
from podium.v1 import plan_pb2


class PlanFormatError(InvalidRequest):
    """A plan that does not have the documented form; the message names the place."""

    code = "PLAN_FORMAT"
    advice = "Write the plan in the form of docs/architecture.md, section 'One plan, everywhere'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """An argument given in the plan itself: any JSON value."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRef:
    """An argument taken from the normalised request, by dotted path; '' is the whole request."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRef:
    """An argument taken from another step's output, by dotted path; '' is the whole output."""

    step: int
    field: str


Argument = Literal | RequestRef | StepRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An agent that could do a step, with the planner's score in [0, 1]."""

    tool: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: which agent, with which arguments, after which steps."""

    tool: str
    candidates: tuple[Candidate, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=lambda: MappingProxyType({}))
    depends_on: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A graph of steps; steps are addressed by index, independent ones run together."""

    steps: tuple[Step, ...]
    parallel_groups: tuple[tuple[int, ...], ...]
    confidence: float

    @classmethod
    def of(cls, steps: Iterable[Step], confidence: float) -> "Plan":
        """A plan whose groups follow from its dependencies; a step's references count as dependencies.

        A plan with a cycle gets its cyclic steps in no group; verification names them.
        """
        completed = tuple(_with_reference_dependencies(step) for step in steps)
        return cls(steps=completed, parallel_groups=_levels(completed), confidence=confidence)

    def to_json(self) -> dict[str, Any]:
        """The plan in its JSON form."""
        return {
            "steps": [
                {
                    "tool": step.tool,
                    "candidates": [{"tool": item.tool, "score": item.score} for item in step.candidates],
                    "arguments": {name: _argument_json(value) for name, value in step.arguments.items()},
                    "depends_on": list(step.depends_on),
                }
                for step in self.steps
            ],
            "parallel_groups": [list(group) for group in self.parallel_groups],
            "confidence": self.confidence,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Plan":
        """Read a plan's JSON form; missing groups are derived.

        Raises:
            PlanFormatError: a field is missing or has another type.
        """
        try:
            steps = tuple(_step(item) for item in value["steps"])
            confidence = float(value.get("confidence", 1.0))
            groups = value.get("parallel_groups")
            if not math.isfinite(confidence) or not 0 <= confidence <= 1:
                raise PlanFormatError(f"confidence must be in [0, 1], got {confidence}")
            if groups is None:
                return cls.of(steps, confidence)
            return cls(
                steps=tuple(_with_reference_dependencies(step) for step in steps),
                parallel_groups=tuple(tuple(_index(index) for index in group) for group in groups),
                confidence=confidence,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanFormatError(f"not a plan: {error!r}") from error

    def to_proto(self) -> plan_pb2.Plan:
        """The plan as it travels."""
        message = plan_pb2.Plan(confidence=self.confidence)
        for step in self.steps:
            entry = message.steps.add(tool=step.tool, depends_on=step.depends_on)
            for candidate in step.candidates:
                entry.candidates.add(tool=candidate.tool, score=candidate.score)
            for name, argument in step.arguments.items():
                entry.arguments[name].CopyFrom(_argument_proto(argument))
        for group in self.parallel_groups:
            message.parallel_groups.add(steps=group)
        return message

    @classmethod
    def from_proto(cls, message: plan_pb2.Plan) -> "Plan":
        """Read a plan from the wire.

        Raises:
            PlanFormatError: an argument has no origin or its literal is not JSON.
        """
        return cls(
            steps=tuple(
                Step(
                    tool=step.tool,
                    candidates=tuple(Candidate(tool=item.tool, score=item.score) for item in step.candidates),
                    arguments=MappingProxyType(
                        {name: _argument_from_proto(name, step.arguments[name]) for name in sorted(step.arguments)}
                    ),
                    depends_on=tuple(step.depends_on),
                )
                for step in message.steps
            ),
            parallel_groups=tuple(tuple(group.steps) for group in message.parallel_groups),
            confidence=message.confidence,
        )


def _with_reference_dependencies(step: Step) -> Step:
    referenced = {argument.step for argument in step.arguments.values() if isinstance(argument, StepRef)}
    depends_on = tuple(sorted(set(step.depends_on) | referenced))
    return Step(tool=step.tool, candidates=step.candidates, arguments=step.arguments, depends_on=depends_on)


def _levels(steps: Sequence[Step]) -> tuple[tuple[int, ...], ...]:
    done: set[int] = set()
    groups: list[tuple[int, ...]] = []
    while ready := tuple(
        index for index, step in enumerate(steps) if index not in done and set(step.depends_on) <= done
    ):
        groups.append(ready)
        done.update(ready)
    return tuple(groups)


def _argument_json(argument: Argument) -> Any:
    match argument:
        case Literal(value=value):
            return value
        case RequestRef(path=path):
            return {"request": path}
        case StepRef(step=step, field=path):
            return {"step": step, "field": path}


def _argument(value: Any) -> Argument:
    if isinstance(value, Mapping):
        keys = set(value)
        if keys == {"request"} and isinstance(value["request"], str):
            return RequestRef(path=value["request"])
        if keys in ({"step", "field"}, {"step"}) and isinstance(value["step"], int):
            return StepRef(step=_index(value["step"]), field=str(value.get("field", "")))
    return Literal(value=value)


def _step(value: Mapping[str, Any]) -> Step:
    tool = value["tool"]
    if not isinstance(tool, str) or not tool:
        raise PlanFormatError(f"tool must be a name, got {tool!r}")
    return Step(
        tool=tool,
        candidates=tuple(
            Candidate(tool=str(item["tool"]), score=float(item["score"])) for item in value.get("candidates", ())
        ),
        arguments=MappingProxyType(
            {str(name): _argument(item) for name, item in value.get("arguments", {}).items()}
        ),
        depends_on=tuple(_index(index) for index in value.get("depends_on", ())),
    )


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise PlanFormatError(f"a step is named by its index, got {value!r}")
    return value


def _argument_proto(argument: Argument) -> plan_pb2.Argument:
    match argument:
        case Literal(value=value):
            return plan_pb2.Argument(literal_json=canonical_json(value))
        case RequestRef(path=path):
            return plan_pb2.Argument(request_path=path)
        case StepRef(step=step, field=path):
            return plan_pb2.Argument(step_field=plan_pb2.StepField(step=step, field=path))


def _argument_from_proto(name: str, message: plan_pb2.Argument) -> Argument:
    match message.WhichOneof("origin"):
        case "literal_json":
            try:
                return Literal(value=json.loads(message.literal_json))
            except ValueError as error:
                raise PlanFormatError(f"argument {name!r} is not JSON: {error}") from error
        case "request_path":
            return RequestRef(path=message.request_path)
        case "step_field":
            return StepRef(step=message.step_field.step, field=message.step_field.field)
        case _:
            raise PlanFormatError(f"argument {name!r} has no origin")

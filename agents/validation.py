"""Does an agent keep its own contract? Run it on generated inputs and look at what comes back.

Inputs are the examples of its input schema, the examples with one field made anew, and wholly generated ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.canonical import canonical_json
from agents.examples import input_examples
from agents.generation import generate
from agents.invocation import AgentContext, Engine, Invocation
from agents.registry import RegisteredAgent
from agents.spec import ManifestInvalid
from podium.errors import (
    AgentCrashed,
    AgentTimeout,
    DeviceOffline,
    InternalError,
    OutputContractBroken,
    PodiumError,
)

_BROKEN_PROMISES = (AgentCrashed, AgentTimeout, OutputContractBroken, InternalError, ManifestInvalid)
"""What an agent must not do to any input its schema allows; every other Podium error is an honest refusal."""
_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """How an agent behaved."""

    agent: str
    version: str
    answered: int
    """Inputs with an output that keeps the contract."""
    refused: Mapping[str, int]
    """Inputs refused with a typed error, by its code."""
    violations: tuple[str, ...]
    """Broken promises, in words; at most 20."""
    drift: tuple[str, ...]
    """Places whose type the schema leaves open or bends, and that came back with another type."""
    skipped: str = ""
    """Why the agent was not run, where it was not."""

    @property
    def passed(self) -> bool:
        """Whether no promise was broken."""
        return not self.violations


async def validate_agent(
    agent: RegisteredAgent,
    engine: Engine,
    context: AgentContext,
    *,
    count: int = 25,
    seed: int = 0,
    allow_writes: bool = False,
) -> ValidationReport:
    """Run an agent on about `count` generated inputs.

    Args:
        agent: The agent.
        engine: Runs it.
        context: What it is told besides its inputs.
        count: Inputs to generate, beside the examples.
        seed: The same seed generates the same inputs.
        allow_writes: Also run agents whose side effects are writes.
    """
    if agent.spec.side_effects == "write" and not allow_writes:
        return _skipped(agent, "it writes; its schemas were checked, it was not run")
    answered = 0
    refused: Counter[str] = Counter()
    violations: list[str] = []
    seen: dict[str, set[str]] = {}
    for inputs in generated_inputs(agent, count=count, seed=seed):
        invocation = Invocation(spec=agent.spec, inputs=inputs, context=context, time_limit=agent.spec.sla.timeout)
        try:
            output = agent.contract.sanitise(await engine.invoke(invocation)).output
            if broken := agent.contract.output_violations(output):
                raise OutputContractBroken(broken[0], evidence=broken)
        except DeviceOffline as error:
            return _skipped(agent, str(error))
        except _BROKEN_PROMISES as error:
            given = canonical_json(inputs).decode()[:200]
            violations.append(f"{error.code}: {str(error)[:300]} (input {given})")
        except PodiumError as error:
            refused[error.code] += 1
        else:
            answered += 1
            for place, kind in _types(output, "$"):
                seen.setdefault(place, set()).add(kind)
    return ValidationReport(
        agent=agent.spec.name,
        version=agent.spec.version,
        answered=answered,
        refused=dict(sorted(refused.items())),
        violations=tuple(violations[:_MAX_SHOWN]),
        drift=tuple(_drift(agent.spec.output_schema, seen)[:_MAX_SHOWN]),
    )


def generated_inputs(agent: RegisteredAgent, *, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """The examples of an agent's input schema, then inputs generated from it; all keep the schema."""
    examples = input_examples(agent.spec)
    yield from examples
    for inputs in generate(agent.spec.input_schema, examples, count=count, seed=seed):
        if not agent.contract.input_violations(inputs):
            yield inputs


def _skipped(agent: RegisteredAgent, reason: str) -> ValidationReport:
    return ValidationReport(
        agent=agent.spec.name,
        version=agent.spec.version,
        answered=0,
        refused={},
        violations=(),
        drift=(),
        skipped=reason,
    )


def _types(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every place of a JSON value with its type; entries of a list share one place."""
    if isinstance(value, dict):
        yield place, "object"
        for name, item in value.items():
            yield from _types(item, f"{place}.{name}")
    elif isinstance(value, list):
        yield place, "array"
        for item in value:
            yield from _types(item, f"{place}[]")
    elif value is not None:
        kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
        yield place, next(name for kind, name in kinds if isinstance(value, kind))


def _drift(schema: Mapping[str, Any], seen: Mapping[str, set[str]]) -> list[str]:
    drifted = []
    for place, kinds in sorted(seen.items()):
        declared = _declared(schema, place)
        if declared == {"integer"} and "number" in kinds:
            # 2.0 satisfies `integer` in JSON Schema and is another thing to most readers of JSON.
            drifted.append(f"{place} is declared an integer and came with a decimal point")
        elif not declared and len({"number" if kind == "integer" else kind for kind in kinds}) > 1:
            drifted.append(f"{place} came as {' and '.join(sorted(kinds))}, and the schema does not say which")
    return drifted


def _declared(schema: Any, place: str) -> set[str]:
    """The types that a schema declares at a place; none where it leaves them open."""
    for part in place.removeprefix("$").replace("[]", ".[]").split(".")[1:]:
        if not isinstance(schema, Mapping):
            return set()
        if part == "[]":
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
    if not isinstance(schema, Mapping):
        return set()
    if not any(key in schema for key in ("type", "enum", "const", "anyOf", "oneOf")):
        return set()
    declared = schema.get("type", "any of several")
    return {declared} if isinstance(declared, str) else set(declared)

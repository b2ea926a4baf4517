"""Does an agent keep its own contract? Run it on generated inputs and look at what comes back.

Inputs are the examples of its input schema, the examples with one field made anew, and wholly generated ones.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.canonical import canonical_json
from agents.drift import Drift, drifts
from agents.examples import input_examples
from agents.generation import generate
from agents.invocation import AgentContext, Engine, Invocation
from agents.registry import RegisteredAgent
from agents.spec import ManifestInvalid
from podium.errors import (
    AgentCrashed,
    AgentOverLimit,
    AgentTimeout,
    AgentUnreachable,
    DeviceOffline,
    InternalError,
    OutputContractBroken,
    PodiumError,
)

_BROKEN_PROMISES = (
    AgentCrashed,
    AgentTimeout,
    AgentOverLimit,
    OutputContractBroken,
    InternalError,
    ManifestInvalid,
)
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
    drift: tuple[Drift, ...]
    """Types that differ from those declared, the most frequent first; at most 20."""
    broken: int = 0
    """Inputs on which a promise was broken."""
    cut_short: bool = False
    """There was no time for all inputs."""
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
    left_s: Callable[[], float] = lambda: math.inf,
    progress: Callable[[int], None] = lambda _: None,
) -> ValidationReport:
    """Run an agent on about `count` generated inputs.

    Args:
        agent: The agent.
        engine: Runs it.
        context: What it is told besides its inputs.
        count: Inputs to generate, beside the examples.
        seed: The same seed generates the same inputs.
        allow_writes: Also run agents whose side effects are writes.
        left_s: Seconds left for all of it; when they are over, the report says that it was cut short.
        progress: Told how many inputs were tried, after each.

    Raises:
        AgentUnreachable: it runs elsewhere and cannot be reached.
    """
    if agent.spec.side_effects == "write" and not allow_writes:
        return _skipped(agent, "it writes; its schemas were checked, it was not run")
    trial = _Trial(agent)
    for number, inputs in enumerate(generated_inputs(agent, count=count, seed=seed)):
        # A copy: an agent that sorts a list in place must not change the examples that later inputs are made of.
        given = canonical_json(inputs)
        invocation = Invocation(
            spec=agent.spec, inputs=json.loads(given), context=context, time_limit=agent.spec.sla.timeout
        )
        try:
            async with asyncio.timeout(max(0.0, left) if (left := left_s()) < math.inf else None):
                raw = await engine.invoke(invocation)
            trial.answer(agent.contract.sanitise(raw).output)
        except TimeoutError:
            trial.cut_short = True
            break
        except DeviceOffline as error:
            return _skipped(agent, str(error))
        except AgentUnreachable:
            raise
        except _BROKEN_PROMISES as error:
            trial.violations.append(f"{error.code}: {str(error)[:300]} (input {given.decode()[:200]})")
        except PodiumError as error:
            trial.refused[error.code] += 1
        except Exception as error:  # noqa: BLE001 - engines and agents are foreign code
            trial.violations.append(f"{type(error).__name__}: {str(error)[:300]} (input {given.decode()[:200]})")
        progress(number + 1)
    return trial.report()


class _Trial:
    """What was seen of one agent so far."""

    def __init__(self, agent: RegisteredAgent) -> None:
        self._agent = agent
        self._drift: dict[tuple[str, str], Drift] = {}
        self._seen: dict[str, set[str]] = {}
        self.answered = 0
        self.refused: Counter[str] = Counter()
        self.violations: list[str] = []
        self.cut_short = False

    def answer(self, output: Mapping[str, Any]) -> None:
        """Look at one sanitised output.

        Raises:
            OutputContractBroken: it breaks the schema.
        """
        for drift in drifts(self._agent.spec.output_schema, output):
            first = self._drift.get((drift.kind, drift.place), replace(drift, times=0))
            self._drift[drift.kind, drift.place] = replace(first, times=first.times + 1)
        if broken := self._agent.contract.output_violations(output):
            raise OutputContractBroken(broken[0], evidence=broken)
        self.answered += 1
        for place, kind in _types(output, "$"):
            self._seen.setdefault(place, set()).add(kind)

    def report(self) -> ValidationReport:
        """How the agent behaved."""
        spec = self._agent.spec
        drift = [*self._drift.values(), *_open_places(spec.output_schema, self._seen)]
        return ValidationReport(
            agent=spec.name,
            version=spec.version,
            answered=self.answered,
            refused=dict(sorted(self.refused.items())),
            violations=tuple(self.violations[:_MAX_SHOWN]),
            broken=len(self.violations),
            drift=tuple(sorted(drift, key=lambda one: (-one.times, one.place, one.kind))[:_MAX_SHOWN]),
            cut_short=self.cut_short,
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


def _open_places(schema: Mapping[str, Any], seen: Mapping[str, set[str]]) -> Iterator[Drift]:
    """Places whose type the schema leaves open, and that came back with several."""
    for place, kinds in sorted(seen.items()):
        if not _declared(schema, place) and len({"number" if kind == "integer" else kind for kind in kinds}) > 1:
            message = f"came as {' and '.join(sorted(kinds))}, and the schema does not say which"
            yield Drift(kind="SEVERAL_TYPES", place=place, message=message)


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

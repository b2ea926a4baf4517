"""Check an agent's raw output: sanitise, schema, golden validators, confidence gate. Agents are never trusted."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.callables import resolve
from agents.canonical import canonical_json
from agents.invocation import AgentContext
from agents.registry import RegisteredAgent
from agents.spec import Validator
from conductor.document import JsonDocument
from conductor.trimming import trimmed
from podium.errors import LowConfidence, OutputContractBroken, ValidatorFailed
from tools.rules.errors import RuleError
from tools.rules.expression import CelRule

_MAX_VIOLATIONS = 20
_MAX_FINDINGS = 5
_FINDINGS = ("contradictions", "differences", "violations", "problems", "findings", "errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOutput:
    """An output that passed every check."""

    document: JsonDocument
    confidence: float
    checks: tuple[str, ...]
    """Names of the checks that passed."""
    repairs: tuple[str, ...]
    """What was repaired before validation."""

    @property
    def output(self) -> dict[str, Any]:
        """The output itself."""
        value: dict[str, Any] = self.document.value
        return value


class OutputChecker:
    """Checks outputs; compiles each agent's validators once."""

    def __init__(self) -> None:
        self._validators: dict[tuple[str, str, str], tuple[_Compiled, ...]] = {}

    def check(
        self, agent: RegisteredAgent, raw: object, inputs: Mapping[str, Any], context: AgentContext
    ) -> CheckedOutput:
        """The checked output.

        Raises:
            OutputContractBroken: prose, NaN, too large, too deep, or not of the output schema.
            ValidatorFailed: a golden validator refuses it; `evidence` lists what each said.
            LowConfidence: the agent is less sure than its gate asks.
            ManifestInvalid: a validator cannot be compiled or imported.
        """
        sanitised = agent.contract.sanitise(raw)
        output = sanitised.output
        if violations := agent.contract.output_violations(output):
            raise OutputContractBroken(
                f"the output breaks its schema: {violations[0]}", evidence=violations, agent=agent.spec.name
            )
        checks = ["sanitised", "schema"]
        if failed := self._refusals(agent, inputs, output, context, checks):
            raise ValidatorFailed(
                f"a validator refused the output: {failed[0]}",
                evidence=[*failed[:_MAX_VIOLATIONS], *findings_of(output)],
                agent=agent.spec.name,
            )
        confidence = _confidence(agent, output)
        if agent.spec.confidence_gate:
            checks.append("confidence")
        # A validator in Python has held the output in its hands; what is kept is what passed the schema.
        foreign_hands = any(validator.function is not None for validator in self._compiled(agent))
        document = JsonDocument(sanitised.data) if foreign_hands else JsonDocument.written(output, sanitised.data)
        return CheckedOutput(
            document=document,
            confidence=confidence,
            checks=tuple(checks),
            repairs=tuple(sanitised.repairs),
        )

    def _refusals(
        self,
        agent: RegisteredAgent,
        inputs: Mapping[str, Any],
        output: Mapping[str, Any],
        context: AgentContext,
        checks: list[str],
    ) -> list[str]:
        failed: list[str] = []
        for validator in self._compiled(agent):
            refusals = validator.refusals(inputs, output, context)
            failed.extend(f"{validator.name}: {refusal}" for refusal in refusals)
            if not refusals:
                checks.append(validator.name)
        return failed

    def _compiled(self, agent: RegisteredAgent) -> "tuple[_Compiled, ...]":
        key = (agent.spec.name, agent.spec.version, agent.manifest_sha256)
        if key not in self._validators:
            self._validators[key] = tuple(_compile(validator) for validator in agent.spec.validators)
        return self._validators[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    name: str
    message: str
    rule: CelRule | None
    function: Callable[..., Any] | None

    def refusals(self, inputs: Mapping[str, Any], output: Mapping[str, Any], context: AgentContext) -> list[str]:
        if self.rule is not None:
            return self._by_rule(self.rule, inputs, output, context)
        if self.function is None:
            return []
        try:
            return [str(item) for item in self.function(inputs, output, context)]
        except Exception as error:  # noqa: BLE001 - a validator is foreign code; its crash refuses the output
            return [f"the validator itself raised {type(error).__name__}: {str(error)[:300]}"]

    def _by_rule(
        self, rule: CelRule, inputs: Mapping[str, Any], output: Mapping[str, Any], context: AgentContext
    ) -> list[str]:
        values: dict[str, Any] = {}
        # Only what the rule mentions is converted: a page's boxes are many.
        if "input" in rule.variables:
            values["input"] = inputs
        if "output" in rule.variables:
            values["output"] = output
        if "request" in rule.variables:
            values["request"] = trimmed(context.request)
        try:
            if rule.holds(values):
                return []
        except RuleError as error:
            return [f"{self.message or rule.expression}: cannot be evaluated: {error.message}"]
        return [self.message or f"{rule.expression} does not hold"]


def findings_of(output: Mapping[str, Any]) -> list[str]:
    """What a checking agent's output itself says is wrong, in words: a refused output is kept nowhere else."""
    said: list[str] = []
    for name in _FINDINGS:
        entries = output.get(name)
        for entry in entries[:_MAX_FINDINGS] if isinstance(entries, list) else ():
            words = entry
            if isinstance(entry, Mapping):
                words = entry.get("evidence") or entry.get("message") or canonical_json(entry).decode()
            said.append(f"{name}: {str(words)[:400]}")
    return said


def _compile(validator: Validator) -> _Compiled:
    return _Compiled(
        name=validator.name,
        message=validator.message,
        rule=CelRule.compile(validator.cel) if validator.cel is not None else None,
        function=resolve(validator.python) if validator.python is not None else None,
    )


def _confidence(agent: RegisteredAgent, output: Mapping[str, Any]) -> float:
    value = output.get("confidence_score")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OutputContractBroken("confidence_score is not a number", agent=agent.spec.name)
    if not 0 <= value <= 1:
        raise OutputContractBroken(f"confidence_score {value} is not in [0, 1]", agent=agent.spec.name)
    if value < agent.spec.confidence_gate:
        raise LowConfidence(
            f"{agent.spec.name} is {value:.2f} sure, its gate asks {agent.spec.confidence_gate:.2f}",
            evidence=[f"confidence_score = {value}", f"confidence_gate = {agent.spec.confidence_gate}"],
            agent=agent.spec.name,
        )
    return float(value)

"""Runs sales questions through rules, contracts and the Python engine, without a conductor.

It executes the pack's own plan templates, so what is tested is what the conductor runs.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.audit import AuditEntry, AuditReceipt
from agents.engines.python import PythonEngine
from agents.invocation import AgentContext, Caller, Invocation, Resources
from agents.pack import Pack, build_registry, build_resources, load_packs
from agents.registry import AgentRegistry
from agents.understanding import Understanding
from tools.rules.errors import RuleEvaluationError
from tools.rules.expression import CelRule

NOW = datetime(2026, 10, 8, 1, 30, tzinfo=UTC)


class Notebook:
    """An audit log in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, AuditEntry] = {}

    def append(self, entry: AuditEntry) -> AuditReceipt:
        duplicate = entry.key in self.entries
        self.entries.setdefault(entry.key, entry)
        return AuditReceipt(sequence=list(self.entries).index(entry.key) + 1, sha256="0" * 64, duplicate=duplicate)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a question."""

    request: Mapping[str, Any]
    outputs: dict[str, dict[str, Any]]
    """By tool."""

    @property
    def question(self) -> str:
        """The clarifying question, or '' when there was an answer."""
        return str(self.outputs.get("clarify", {}).get("question", ""))

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.outputs["reporter"]["fields"]

    @property
    def markdown(self) -> str:
        return str(self.outputs["reporter"]["markdown"])


@dataclass(kw_only=True)
class SalesDesk:
    """The sales pack, ready to be asked."""

    data_dir: Path
    caller: Caller = field(default_factory=lambda: Caller(name="ann"))
    notebook: Notebook = field(default_factory=Notebook)

    def __post_init__(self) -> None:
        self.pack: Pack = next(pack for pack in load_packs() if pack.name == "sales")
        self.registry: AgentRegistry = build_registry([self.pack])
        self.resources: Resources = build_resources([self.pack], self.data_dir, {"audit_log": self.notebook})
        self.understanding = Understanding([self.pack.vocabulary])
        self.engine = PythonEngine(self.resources, threads=2)

    def ask(self, text: str, *, now: datetime = NOW, answers: tuple[str, ...] = ()) -> Answer:
        return asyncio.run(self._ask(text, now, answers))

    async def _ask(self, text: str, now: datetime, answers: tuple[str, ...]) -> Answer:
        given = [_Given(answer) for answer in answers]
        request = {
            **self.understanding(text, now, given),
            "original": text,
            "now": now.isoformat(),
            "payload_kind": "",
            "payload": {},
        }
        rule = next((rule for rule in self.pack.rules if self._holds(rule.when, {"request": request})), None)
        outputs: dict[str, dict[str, Any]] = {}
        if rule is None or request["unresolved"]:
            inputs = {name: request[name] for name in ("language", "text", "unresolved")}
            outputs["clarify"] = await self.call("clarify", inputs, 0, now)
            return Answer(request=request, outputs=outputs)
        steps, done = rule.steps, 0
        while done < len(steps):
            tool = steps[done]["tool"]
            if tool not in outputs:
                outputs[tool] = await self.call(tool, _inputs(steps, done, request, outputs), done, now)
                values = {"request": request, "output": outputs[tool], "device": {}}
                for revision in self.pack.revisions:
                    if revision.after == tool and self._holds(revision.when, values):
                        steps, done = revision.steps, -1
                        break
            done += 1
        return Answer(request=request, outputs=outputs)

    async def call(self, tool: str, inputs: Mapping[str, Any], step: int, now: datetime) -> dict[str, Any]:
        """One agent, with its contract kept on both sides and its golden validators."""
        agent = self.registry.get(tool)
        assert agent.contract.input_violations(inputs) == []
        context = AgentContext(
            task_id="t-1", step=step, attempt=1, idempotency_key=f"t-1/{step}", now=now, caller=self.caller
        )
        raw = await self.engine.invoke(
            Invocation(spec=agent.spec, inputs=inputs, context=context, time_limit=agent.spec.sla.timeout)
        )
        sanitised = agent.contract.sanitise(raw)
        assert sanitised.repairs == ()
        assert agent.contract.output_violations(sanitised.output) == []
        for validator in agent.spec.validators:
            if validator.cel:
                assert CelRule.compile(validator.cel).holds({"input": inputs, "output": sanitised.output}), (
                    validator
                )
        return sanitised.output

    def _holds(self, expression: str, values: Mapping[str, Any]) -> bool:
        try:
            return CelRule.compile(expression).holds(values)
        except RuleEvaluationError:
            return False


@dataclass(frozen=True)
class _Given:
    answer: str


def _inputs(steps: Any, index: int, request: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value, steps, request, outputs) for name, value in steps[index]["arguments"].items()}


def _value(value: Any, steps: Any, request: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    if isinstance(value, dict) and set(value) == {"request"}:
        return request[value["request"]]
    if isinstance(value, dict) and set(value) == {"step", "field"}:
        return outputs[steps[value["step"]]["tool"]][value["field"]]
    return value

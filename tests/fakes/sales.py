"""A five-step task on scripted agents: parse, then retrieve and lookup side by side, then code, then report."""

from typing import Any

from agents.spec import AgentSpec
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, output

SPECS: tuple[AgentSpec, ...] = (
    agent_spec("parse", inputs={"text": TEXT}, outputs={"topic": TEXT}),
    agent_spec("retrieve", inputs={"topic": TEXT}, outputs={"rows": {"type": "array", "items": NUMBER}}),
    agent_spec("lookup", inputs={"topic": TEXT}, outputs={"unit": TEXT}),
    agent_spec(
        "code", inputs={"rows": {"type": "array", "items": NUMBER}, "unit": TEXT}, outputs={"total": NUMBER}
    ),
    agent_spec("report", inputs={"total": NUMBER}, outputs=ANSWER),
)

SCRIPTS: dict[str, Any] = {
    "parse": output(topic="sales"),
    "retrieve": output(rows=[1.0, 2.0, 3.5]),
    "lookup": output(unit="EUR"),
    "code": lambda invocation: output(total=sum(invocation.inputs["rows"])),
    "report": lambda invocation: answer(f"Sales were {invocation.inputs['total']} EUR [Source: S1]"),
}

PLAN: dict[str, Any] = {
    "steps": [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {"tool": "retrieve", "arguments": {"topic": {"step": 0, "field": "topic"}}},
        {"tool": "lookup", "arguments": {"topic": {"step": 0, "field": "topic"}}},
        {
            "tool": "code",
            "arguments": {"rows": {"step": 1, "field": "rows"}, "unit": {"step": 2, "field": "unit"}},
        },
        {"tool": "report", "arguments": {"total": {"step": 3, "field": "total"}}},
    ],
    "confidence": 0.9,
}

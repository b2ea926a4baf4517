"""Plans that ask the caller, and questions out of what the asking agent returns."""

from collections.abc import Mapping
from typing import Any

from agents.registry import AgentRegistry, RegisteredAgent
from conductor.plan import Argument, Literal, Plan, RequestRef, Step
from conductor.planner import Proposal
from conductor.verify import CLARIFY
from podium.v1 import event_pb2

_FROM_REQUEST = (
    "text",
    "original",
    "language",
    "unresolved",
    "corrections",
    "clarifications",
    "entities",
    "intents",
    "now",
    "agents",
)
"""Parts of the request that an asking agent gets when its input schema names them."""


def asking_agent(registry: AgentRegistry, avoid: frozenset[str] = frozenset()) -> RegisteredAgent | None:
    """The agent on duty that asks callers, or None."""
    return next((agent for agent in registry.with_capability(CLARIFY) if agent.spec.name not in avoid), None)


def asks_caller(agent: RegisteredAgent | None) -> bool:
    """Whether a step of this agent ends in a question."""
    return agent is not None and CLARIFY in agent.spec.capability_tags


def clarify_step(
    agent: RegisteredAgent, request: Mapping[str, Any], *, reason: str, about: tuple[str, ...]
) -> Step:
    """A step that asks the caller; arguments are those that the agent's input schema names."""
    named = agent.spec.input_schema.get("properties", {})
    arguments: dict[str, Argument] = {
        name: RequestRef(path=name)
        for name in _FROM_REQUEST
        if name in named and name in request and _accepts(agent, name, request[name])
    }
    if "language" in named and "language" not in arguments:
        arguments["language"] = Literal(value="en")  # a language that the agent does not speak
    if "request" in named:
        arguments["request"] = RequestRef(path="")
    if "reason" in named:
        arguments["reason"] = Literal(value=reason)
    if "about" in named:
        arguments["about"] = Literal(value=list(about))
    return Step(tool=agent.spec.name, arguments=arguments)


def _accepts(agent: RegisteredAgent, name: str, value: Any) -> bool:
    return not any(found.startswith(f"$.{name}") for found in agent.contract.input_violations({name: value}))


def clarify_plan(
    registry: AgentRegistry, request: Mapping[str, Any], *, reason: str, about: tuple[str, ...], planner: str
) -> Proposal | None:
    """A plan whose only step asks the caller; None when nobody can ask."""
    agent = asking_agent(registry)
    if agent is None:
        return None
    step = clarify_step(agent, request, reason=reason, about=about)
    return Proposal(plan=Plan.of([step], 1.0), answer=0, planner=planner, origin=agent.spec.name, reason=reason)


def question_of(output: Mapping[str, Any], *, question_id: str, about: tuple[str, ...]) -> event_pb2.Question:
    """The question that an asking agent's output holds."""
    found = output.get("question", output)
    fields = found if isinstance(found, Mapping) else {"text": found}
    return event_pb2.Question(
        question_id=question_id,
        text=str(fields.get("text") or fields.get("question") or ""),
        suggestions=[_words(item) for item in (fields.get("suggestions") or output.get("suggestions") or ())],
        about=[_words(item) for item in (fields.get("about") or output.get("about") or about)],
    )


def mentions(request: Mapping[str, Any]) -> tuple[str, ...]:
    """What the request names and nobody understood, as it stands in the request; only what matters."""
    return tuple(
        _words(item)
        for item in request.get("unresolved", ())
        if not (isinstance(item, Mapping) and item.get("matters") is False)
    )


def _words(item: Any) -> str:
    if isinstance(item, Mapping):
        for name in ("text", "mention", "surface", "value", "label"):
            if isinstance(item.get(name), str):
                return str(item[name])
    return str(item)

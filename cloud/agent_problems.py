"""What is wrong with agents right now, in words for whoever operates the server."""

from collections.abc import Iterator

from agents.engines.onnx import OnnxEngine
from agents.registry import AgentRegistry, RegisteredAgent
from cloud.registrations import LeftOut, Registrations
from podium.terminal import plain
from tools.artefacts.serving import SlotState

_MAX_PROBLEM_CHARS = 600


class AgentProblems:
    """Looks at what only the running server knows; cheap enough to be asked for every agent of a list."""

    def __init__(self, registry: AgentRegistry, registrations: Registrations, onnx: OnnxEngine) -> None:
        """Take where problems show."""
        self._registry = registry
        self._registrations = registrations
        self._onnx = onnx

    def of(self, agent: RegisteredAgent) -> str:
        """What is wrong with an agent, on one line; empty when nothing is known to be."""
        state = self._state(agent)
        return "" if state is None else one_line("; ".join(_of_model(state)))

    def model_version(self, agent: RegisteredAgent) -> str:
        """The version of its model that serves; empty when none does, or it has none."""
        state = self._state(agent)
        return (state.serving or "") if state is not None else ""

    def left_out(self) -> tuple[tuple[LeftOut, str], ...]:
        """Registered versions that do not serve since the start, each with why."""
        return tuple(
            (one, one_line(f"left out at start: {one.reason}"))
            for one in self._registrations.left_out
            if self._registry.exactly(one.name, one.version) is None
        )

    def _state(self, agent: RegisteredAgent) -> SlotState | None:
        return self._onnx.state_of(agent.spec) if agent.spec.engine == "onnx" else None


def _of_model(state: SlotState) -> Iterator[str]:
    for refused in state.refused:
        version = f"refused model version {refused.version}" if refused.version else "no model"
        yield f"{version}: {refused.code}: {refused.reason}"
    if state.refused and state.serving:
        yield f"version {state.serving} serves"
    elif state.refused:
        yield "no version serves"


def one_line(text: str) -> str:
    """What is wrong, fit to be shown: on one line, of bounded length, without control characters."""
    words = plain(" ".join(text.split()))
    return (
        words if len(words) <= _MAX_PROBLEM_CHARS else words[: _MAX_PROBLEM_CHARS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )

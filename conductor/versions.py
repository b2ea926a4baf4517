"""Which version of an agent does the work of a task: the one it began with, as long as that is in service."""

from agents.registry import AgentRegistry, RegisteredAgent
from conductor.progress import StepProgress, TaskState
from podium.v1 import status_pb2

_GOOD = frozenset({status_pb2.STEP_STATUS_SUCCEEDED, status_pb2.STEP_STATUS_RUNNING})


def agent_of_task(state: TaskState, registry: AgentRegistry, name: str) -> RegisteredAgent | None:
    """The version of an agent that a task uses; None when there is no such agent.

    Args:
        state: The task.
        registry: The agents.
        name: The agent. It may be out of service: whoever asks looks at `enabled`.
    """
    used = (step.agent_version for step in state.steps if step.agent == name and step.status in _GOOD)
    return registry.choose(name, state.task_id, keep=next(filter(None, used), ""))


def agent_of_step(state: TaskState, registry: AgentRegistry, step: StepProgress) -> RegisteredAgent | None:
    """The version that does a step at its next start; None when there is no such agent.

    A step that is started again, because the process died or a person looked, stays on its version. A failed
    attempt goes on with another version that gets calls, if there is one; a write never does, because only the
    version that may have written knows.
    """
    name = step.acting_agent
    if name != step.agent or not step.agent_version:
        return agent_of_task(state, registry, name)
    began = registry.choose(name, state.task_id, keep=step.agent_version)
    if step.failures == 0 or step.error is None or began is None or began.spec.side_effects == "write":
        return began
    return registry.choose(name, state.task_id, avoid=step.agent_version)


def agent_that_did(registry: AgentRegistry, step: StepProgress) -> RegisteredAgent | None:
    """The agent and version that a step's output came from, also when it is out of service by now."""
    name = step.agent or step.tool
    return registry.exactly(name, step.agent_version) or registry.find(name)

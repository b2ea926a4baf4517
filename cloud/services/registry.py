"""`RegistryService`: says which agents there are."""

from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from agents.canonical import canonical_json
from agents.registry import AgentRegistry, RegisteredAgent
from podium.v1 import agent_pb2, registry_pb2, registry_pb2_grpc

_SIDE_EFFECTS = {
    "none": agent_pb2.SIDE_EFFECTS_NONE,
    "read": agent_pb2.SIDE_EFFECTS_READ,
    "write": agent_pb2.SIDE_EFFECTS_WRITE,
}

Context = grpc.aio.ServicerContext[Any, Any]


class RegistryService(registry_pb2_grpc.RegistryServiceServicer):
    """See `podium/v1/registry.proto`."""

    def __init__(self, registry: AgentRegistry) -> None:
        self._registry = registry

    async def ListAgents(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.ListAgentsRequest, context: Context
    ) -> registry_pb2.ListAgentsResponse:
        """Agents by name and version."""
        agents = (agent for agent in self._registry.all_versions() if request.pack in ("", agent.pack))
        return registry_pb2.ListAgentsResponse(agents=map(describe, agents))

    async def GetAgent(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.GetAgentRequest, context: Context
    ) -> registry_pb2.GetAgentResponse:
        """One agent; the serving version when none is named."""
        return registry_pb2.GetAgentResponse(agent=describe(self._registry.get(request.name, request.version)))


def describe(agent: RegisteredAgent) -> agent_pb2.AgentDescription:
    """An agent as it travels."""
    spec = agent.spec
    timeout = Duration()
    timeout.FromTimedelta(spec.sla.timeout)
    return agent_pb2.AgentDescription(
        name=spec.name,
        version=spec.version,
        description=spec.description,
        input_schema_json=canonical_json(spec.input_schema),
        output_schema_json=canonical_json(spec.output_schema),
        capability_tags=spec.capability_tags,
        requires=spec.requires,
        side_effects=_SIDE_EFFECTS[spec.side_effects],
        timeout=timeout,
        engine=spec.engine,
        pack=agent.pack,
        enabled=agent.enabled,
    )

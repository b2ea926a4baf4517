"""`RegistryService`: says which agents there are, takes new ones in, switches and weighs them."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from agents.canonical import canonical_json
from agents.manifest_text import Finding
from agents.registry import AgentRegistry, RegisteredAgent
from agents.spec import AgentSpec
from cloud.agent_problems import AgentProblems, one_line
from cloud.auth.principal import current_principal
from cloud.planners import PlannerState
from cloud.registering import Registrar
from cloud.registrations import LeftOut, Registrations
from podium.errors import InvalidRequest, NotFound
from podium.v1 import agent_pb2, registry_pb2, registry_pb2_grpc

_SIDE_EFFECTS = {
    "none": agent_pb2.SIDE_EFFECTS_NONE,
    "read": agent_pb2.SIDE_EFFECTS_READ,
    "write": agent_pb2.SIDE_EFFECTS_WRITE,
}
_ENDPOINTS = ("url", "card", "base_url")
"""Settings, by engine, that say where an agent runs; none holds a secret, the form of settings sees to it."""

Context = grpc.aio.ServicerContext[Any, Any]


class RegistryService(registry_pb2_grpc.RegistryServiceServicer):
    """See `podium/v1/registry.proto`."""

    def __init__(
        self,
        registry: AgentRegistry,
        registrations: Registrations,
        registrar: Registrar,
        problems: AgentProblems,
        planner: Callable[[], PlannerState],
    ) -> None:
        self._registry = registry
        self._problems = problems
        self._registrations = registrations
        self._registrar = registrar
        self._planner = planner

    async def ListAgents(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.ListAgentsRequest, context: Context
    ) -> registry_pb2.ListAgentsResponse:
        """Agents by name and version; also those that were registered and left out at the start."""
        agents = [agent for agent in self._registry.all_versions() if request.pack in ("", agent.pack)]
        described = [self._described(agent) for agent in agents]
        if not request.pack:
            described += [_left_out(one, problem) for one, problem in self._problems.left_out()]
            described.sort(key=lambda agent: agent.name)
        return registry_pb2.ListAgentsResponse(agents=described)

    async def GetAgent(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.GetAgentRequest, context: Context
    ) -> registry_pb2.GetAgentResponse:
        """One agent; the serving version when none is named."""
        for one, problem in self._problems.left_out():
            if request.version == one.version and request.name == one.name:
                raise NotFound(
                    f"agent {one.name} {one.version} was {problem}",
                    next_step="Put right what it says and start the server again, or register another version.",
                    agent=one.name,
                )
        agent = self._registry.get(request.name, request.version)
        return registry_pb2.GetAgentResponse(
            agent=self._described(agent), manifest_json=canonical_json(agent.spec.manifest())
        )

    async def RegisterAgent(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.RegisterAgentRequest, context: Context
    ) -> registry_pb2.RegisterAgentResponse:
        """Look an agent over, try it, keep it."""
        registered = await self._registrar.register(
            request.manifest_yaml,
            engine=request.engine,
            model=request.model,
            dry_run=request.dry_run,
            trial_count=request.trial_count,
            by=current_principal().caller,
        )
        report = registered.report
        return registry_pb2.RegisterAgentResponse(
            agent=describe(registered.agent),
            findings=map(_finding, registered.findings),
            answered=report.answered,
            refused=sum(report.refused.values()),
        )

    async def SetAgentEnabled(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.SetAgentEnabledRequest, context: Context
    ) -> registry_pb2.SetAgentEnabledResponse:
        """Take an agent out of service, or back in."""
        agents = await asyncio.to_thread(
            self._registrations.set_enabled,
            request.name,
            request.version,
            request.enabled,
            by=current_principal().caller,
        )
        if not request.enabled:
            await self._registrar.forget(request.name)
        return registry_pb2.SetAgentEnabledResponse(agents=map(self._described, agents))

    async def SetAgentWeights(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.SetAgentWeightsRequest, context: Context
    ) -> registry_pb2.SetAgentWeightsResponse:
        """Share calls among versions."""
        weights = {item.version: item.weight for item in request.weights}
        if len(weights) != len(request.weights):
            raise InvalidRequest("a version is listed twice", field="weights")
        agents = await asyncio.to_thread(
            self._registrations.set_weights, request.name, weights, by=current_principal().caller
        )
        return registry_pb2.SetAgentWeightsResponse(agents=map(self._described, agents))

    async def GetPlanner(  # noqa: N802 - gRPC's name
        self, request: registry_pb2.GetPlannerRequest, context: Context
    ) -> registry_pb2.GetPlannerResponse:
        """What plans, and which model of the trained planner is refused."""
        state = self._planner()
        return registry_pb2.GetPlannerResponse(
            planner=state.planner,
            model_version=state.version,
            refused=[
                registry_pb2.RefusedModel(version=one.version, code=one.code, reason=one_line(one.reason))
                for one in state.refused
            ],
        )

    def _described(self, agent: RegisteredAgent) -> agent_pb2.AgentDescription:
        described = describe(agent)
        described.problem = self._problems.of(agent)
        described.model_version = self._problems.model_version(agent)
        return described


def describe(agent: RegisteredAgent) -> agent_pb2.AgentDescription:
    """An agent as it travels, without what only the running server knows of it."""
    spec = agent.spec
    timeout = Duration()
    timeout.FromTimedelta(spec.sla.timeout)
    described = agent_pb2.AgentDescription(
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
        weight=agent.weight,
        manifest_sha256=agent.manifest_sha256,
        endpoint=_endpoint(spec),
    )
    if spec.handovers:
        described.handovers_json = canonical_json([one.model_dump(mode="json") for one in spec.handovers])
    if agent.registration is not None:
        described.registered_by = agent.registration.by
        described.register_time.FromDatetime(agent.registration.at)
    return described


def _left_out(one: LeftOut, problem: str) -> agent_pb2.AgentDescription:
    """A registered version that does not serve: what is known without its manifest, which may make no sense."""
    return agent_pb2.AgentDescription(
        name=one.name, version=one.version, manifest_sha256=one.manifest_sha256, problem=problem
    )


def _endpoint(spec: AgentSpec) -> str:
    """Where an agent runs; empty when that is here or on a device."""
    if spec.engine == "grpc":
        return ",".join(f"grpc://{place}" for place in spec.settings["endpoints"])
    return next((str(spec.settings[key]) for key in _ENDPOINTS if spec.settings.get(key)), "")


def _finding(finding: Finding) -> registry_pb2.ManifestFinding:
    return registry_pb2.ManifestFinding(
        code=finding.code,
        message=finding.message,
        line=finding.line,
        path=finding.path,
        fatal=finding.fatal,
    )

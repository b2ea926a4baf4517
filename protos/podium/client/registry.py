"""What both clients offer about agents: read one, take one in, switch and weigh it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.client.messages import typed_errors
from podium.link import Address
from podium.v1 import agent_pb2, registry_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.v1 import registry_pb2_grpc


class RegistryCalls:
    """The registry's calls, blocking; part of `podium.client.Client`."""

    _address: Address
    _deadline_s: float
    _registry: "registry_pb2_grpc.RegistryServiceStub"

    def agents(self, pack: str = "") -> "Sequence[agent_pb2.AgentDescription]":
        """The registered agents, sorted by name."""
        request = registry_pb2.ListAgentsRequest(pack=pack)
        with typed_errors(self._address):
            return self._registry.ListAgents(request, timeout=self._deadline_s).agents

    def agent(self, name: str, version: str = "") -> registry_pb2.GetAgentResponse:
        """One agent with its manifest; the serving version when none is named."""
        request = registry_pb2.GetAgentRequest(name=name, version=version)
        with typed_errors(self._address):
            return self._registry.GetAgent(request, timeout=self._deadline_s)

    def planner(self) -> registry_pb2.GetPlannerResponse:
        """What plans over the agents, and which model of the trained planner is refused."""
        with typed_errors(self._address):
            return self._registry.GetPlanner(registry_pb2.GetPlannerRequest(), timeout=self._deadline_s)

    def register_agent(
        self, manifest: str, *, engine: str = "", model: str = "", dry_run: bool = False, trial_count: int = 0
    ) -> registry_pb2.RegisterAgentResponse:
        """Take an agent in by its manifest (YAML), after it was looked over and tried.

        Raises:
            InvalidRequest: the manifest has faults, or the agent broke its own contract; `evidence` says which.
            Conflict: this version of it is registered already.
        """
        request = register_request(manifest, engine, model, dry_run, trial_count)
        with typed_errors(self._address):
            return self._registry.RegisterAgent(request, timeout=2 * self._deadline_s)

    def set_agent_enabled(
        self, name: str, enabled: bool, *, version: str = ""
    ) -> "Sequence[agent_pb2.AgentDescription]":
        """Take an agent out of service or back in; every version of it as it then stands."""
        request = registry_pb2.SetAgentEnabledRequest(name=name, version=version, enabled=enabled)
        with typed_errors(self._address):
            return self._registry.SetAgentEnabled(request, timeout=self._deadline_s).agents

    def set_agent_weights(self, name: str, weights: Mapping[str, int]) -> "Sequence[agent_pb2.AgentDescription]":
        """Share the calls of a name among its versions, 0 to 1000 each; those not listed get none."""
        with typed_errors(self._address):
            return self._registry.SetAgentWeights(weights_request(name, weights), timeout=self._deadline_s).agents


class AsyncRegistryCalls:
    """The registry's calls for asyncio, method for method as `RegistryCalls`."""

    _address: Address
    _deadline_s: float
    _registry: "registry_pb2_grpc.RegistryServiceAsyncStub"

    async def agents(self, pack: str = "") -> "Sequence[agent_pb2.AgentDescription]":
        """The registered agents, sorted by name."""
        request = registry_pb2.ListAgentsRequest(pack=pack)
        with typed_errors(self._address):
            return (await self._registry.ListAgents(request, timeout=self._deadline_s)).agents

    async def agent(self, name: str, version: str = "") -> registry_pb2.GetAgentResponse:
        """One agent with its manifest; the serving version when none is named."""
        request = registry_pb2.GetAgentRequest(name=name, version=version)
        with typed_errors(self._address):
            return await self._registry.GetAgent(request, timeout=self._deadline_s)

    async def planner(self) -> registry_pb2.GetPlannerResponse:
        """What plans over the agents, and which model of the trained planner is refused."""
        with typed_errors(self._address):
            return await self._registry.GetPlanner(registry_pb2.GetPlannerRequest(), timeout=self._deadline_s)

    async def register_agent(
        self, manifest: str, *, engine: str = "", model: str = "", dry_run: bool = False, trial_count: int = 0
    ) -> registry_pb2.RegisterAgentResponse:
        """Take an agent in by its manifest (YAML), after it was looked over and tried.

        Raises:
            InvalidRequest: the manifest has faults, or the agent broke its own contract; `evidence` says which.
            Conflict: this version of it is registered already.
        """
        request = register_request(manifest, engine, model, dry_run, trial_count)
        with typed_errors(self._address):
            return await self._registry.RegisterAgent(request, timeout=2 * self._deadline_s)

    async def set_agent_enabled(
        self, name: str, enabled: bool, *, version: str = ""
    ) -> "Sequence[agent_pb2.AgentDescription]":
        """Take an agent out of service or back in; every version of it as it then stands."""
        request = registry_pb2.SetAgentEnabledRequest(name=name, version=version, enabled=enabled)
        with typed_errors(self._address):
            return (await self._registry.SetAgentEnabled(request, timeout=self._deadline_s)).agents

    async def set_agent_weights(
        self, name: str, weights: Mapping[str, int]
    ) -> "Sequence[agent_pb2.AgentDescription]":
        """Share the calls of a name among its versions, 0 to 1000 each; those not listed get none."""
        request = weights_request(name, weights)
        with typed_errors(self._address):
            return (await self._registry.SetAgentWeights(request, timeout=self._deadline_s)).agents


def register_request(
    manifest: str, engine: str, model: str, dry_run: bool, trial_count: int
) -> registry_pb2.RegisterAgentRequest:
    """A registration, as it travels."""
    return registry_pb2.RegisterAgentRequest(
        manifest_yaml=manifest, engine=engine, model=model, dry_run=dry_run, trial_count=trial_count
    )


def weights_request(name: str, weights: Mapping[str, int]) -> registry_pb2.SetAgentWeightsRequest:
    """Weights of an agent's versions, as they travel."""
    items = [registry_pb2.VersionWeight(version=version, weight=weight) for version, weight in weights.items()]
    return registry_pb2.SetAgentWeightsRequest(name=name, weights=items)

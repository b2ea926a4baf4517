"""Which agents there are, in which versions, and which of them serve."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from agents.contract import Contract
from agents.examples import example_faults
from agents.spec import AgentSpec, ManifestInvalid
from podium.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAgent:
    """An agent that may be planned with."""

    spec: AgentSpec
    contract: Contract
    pack: str = ""
    """The pack it came with; empty for the atomic agents."""
    enabled: bool = True


class AgentRegistry:
    """Agents by name and version. Safe to share between threads."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, RegisteredAgent]] = {}
        self._lock = threading.Lock()
        # Looked up dozens of times for each task and changed hardly ever: kept instead of derived. Both are
        # replaced as a whole, because readers take no lock.
        self._found: Mapping[str, RegisteredAgent] = {}
        self._serving: tuple[RegisteredAgent, ...] = ()

    def register(self, spec: AgentSpec, *, pack: str = "") -> RegisteredAgent:
        """Take an agent in: its schemas must compile, accept their own examples and refuse broken ones.

        That the agent itself keeps the contract is shown by running it: `agents.validation`.

        Raises:
            ManifestInvalid: the schemas are not usable; every fault is listed.
            Conflict: this version of the agent is registered already.
        """
        contract = Contract.compile(spec)
        if faults := example_faults(spec, contract):
            raise ManifestInvalid(
                f"agent {spec.name} contradicts its own examples", evidence=faults, agent=spec.name
            )
        agent = RegisteredAgent(spec=spec, contract=contract, pack=pack)
        with self._lock:
            versions = self._by_name.setdefault(spec.name, {})
            if spec.version in versions:
                raise Conflict(
                    f"agent {spec.name} {spec.version} is registered already",
                    next_step="Give the agent another name or version.",
                    agent=spec.name,
                )
            versions[spec.version] = agent
            self._look_again()
        return agent

    def get(self, name: str, version: str = "") -> RegisteredAgent:
        """The agent of that name; without a version the one that serves, or else the newest.

        Raises:
            NotFound: there is no such agent or version.
        """
        agent = self._by_name.get(name, {}).get(version) if version else self.find(name)
        if agent is None:
            raise NotFound(f"there is no agent {' '.join(filter(None, (name, version)))}", agent=name)
        return agent

    def find(self, name: str) -> RegisteredAgent | None:
        """As `get` without a version, but None when there is no such agent."""
        return self._found.get(name)

    def serving(self) -> tuple[RegisteredAgent, ...]:
        """The enabled agents, the newest version of each name, sorted by name."""
        return self._serving

    def all_versions(self) -> tuple[RegisteredAgent, ...]:
        """Every agent, also those out of service, sorted by name, then version."""
        return tuple(self._sorted())

    def with_capability(self, tag: str) -> tuple[RegisteredAgent, ...]:
        """The serving agents that have a capability tag."""
        return tuple(agent for agent in self.serving() if tag in agent.spec.capability_tags)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Take every version of an agent out of service, or back in.

        Raises:
            NotFound: there is no such agent.
        """
        with self._lock:
            if name not in self._by_name:
                raise NotFound(f"there is no agent {name}", agent=name)
            # A new mapping: readers take no lock and must not see it half changed.
            self._by_name[name] = {
                version: replace(agent, enabled=enabled) for version, agent in self._by_name[name].items()
            }
            self._look_again()

    def _look_again(self) -> None:
        self._found = {
            name: max(versions.values(), key=lambda agent: (agent.enabled, _order(agent)))
            for name, versions in sorted(self._by_name.items())
        }
        self._serving = tuple(agent for agent in self._found.values() if agent.enabled)

    def _sorted(self) -> Iterator[RegisteredAgent]:
        for name in sorted(self._by_name):
            yield from sorted(self._by_name[name].values(), key=_order)


def _order(agent: RegisteredAgent) -> tuple[int, ...]:
    return tuple(int(part) for part in agent.spec.version.split("."))

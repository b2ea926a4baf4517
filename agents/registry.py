"""Which agents there are, in which versions, and which of them serve.

Versions of a name stand side by side. Each has a weight, 0 to 1000; calls are shared among the enabled versions by
weight, and a task keeps the version it began with. Until weights are set, the newest version has all of it.
"""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from agents.canonical import sha256_of
from agents.contract import Contract
from agents.examples import example_faults
from agents.spec import AgentSpec, ManifestInvalid
from podium.errors import Conflict, InvalidRequest, NotFound

MAX_WEIGHT = 1000
"""The whole of what a version can get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Who brought an agent to a running server, and when."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAgent:
    """An agent that may be planned with."""

    spec: AgentSpec
    contract: Contract
    manifest_sha256: str = ""
    """Of its manifest in canonical JSON: two agents with the same one are the same."""
    pack: str = ""
    """The pack it came with; empty for the atomic agents and those that were registered."""
    enabled: bool = True
    weight: int = MAX_WEIGHT
    """Its share of the calls among the enabled versions of its name."""
    registration: Registration | None = None
    """None for an agent that came with the server."""

    @classmethod
    def of(cls, spec: AgentSpec, *, pack: str = "", registration: Registration | None = None) -> "RegisteredAgent":
        """Compile an agent's contract and hold it against its own examples.

        Raises:
            ManifestInvalid: the schemas are not usable; every fault is listed.
        """
        contract = Contract.compile(spec)
        if faults := example_faults(spec, contract):
            raise ManifestInvalid(
                f"agent {spec.name} contradicts its own examples", evidence=faults, agent=spec.name
            )
        return cls(
            spec=spec,
            contract=contract,
            manifest_sha256=sha256_of(spec.manifest()),
            pack=pack,
            registration=registration,
        )


@dataclass(frozen=True, slots=True)
class _Shares:
    """The versions of one name that get calls, with the sums of their weights up to each."""

    agents: tuple[RegisteredAgent, ...]
    sums: tuple[int, ...]

    def at(self, key: str) -> RegisteredAgent:
        # A hash of our own: Python's differs from process to process, and a task must keep its version over them.
        digest = hashlib.sha256(f"{self.agents[0].spec.name}\0{key}".encode()).digest()
        point = int.from_bytes(digest[:8], "big") % self.sums[-1]
        return next(agent for agent, total in zip(self.agents, self.sums, strict=True) if point < total)


class AgentRegistry:
    """Agents by name and version. Safe to share between threads."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, RegisteredAgent]] = {}
        self._lock = threading.RLock()
        self._weighted: set[str] = set()
        """Names whose weights were set: a new version of theirs gets calls when it is given a weight."""
        # Looked up dozens of times for each task and changed hardly ever: kept instead of derived. All are
        # replaced as a whole, because readers take no lock.
        self._found: Mapping[str, RegisteredAgent] = {}
        self._shared: Mapping[str, _Shares] = {}
        self._serving: tuple[RegisteredAgent, ...] = ()

    def register(
        self, spec: AgentSpec, *, pack: str = "", registration: Registration | None = None
    ) -> RegisteredAgent:
        """Take an agent in: its schemas must compile, accept their own examples and refuse broken ones.

        That the agent itself keeps the contract is shown by running it: `agents.validation`.

        Raises:
            ManifestInvalid: the schemas are not usable; every fault is listed.
            Conflict: this version of the agent is registered already.
        """
        return self.add(RegisteredAgent.of(spec, pack=pack, registration=registration))

    def add(self, agent: RegisteredAgent) -> RegisteredAgent:
        """Take in an agent whose contract is compiled; as it then stands, with its weight.

        Raises:
            Conflict: this version of the agent is registered already.
        """
        spec = agent.spec
        with self._lock:
            versions = self._by_name.get(spec.name, {})
            if spec.version in versions:
                raise Conflict(
                    f"agent {spec.name} {spec.version} is registered already",
                    next_step="Give the agent another name or version.",
                    agent=spec.name,
                )
            self._put(spec.name, {**versions, spec.version: agent})
            return self._by_name[spec.name][spec.version]

    def remove(self, name: str, version: str) -> None:
        """Take one version out for good.

        Raises:
            NotFound: there is no such agent or version.
        """
        with self._lock:
            self.get(name, version)
            left = {key: agent for key, agent in self._by_name[name].items() if key != version}
            if not left:
                self._weighted.discard(name)
            self._put(name, left)

    def copy(self) -> "AgentRegistry":
        """A registry of the same agents, to try a change on."""
        twin = AgentRegistry()
        with self._lock:
            twin._by_name, twin._weighted = self._by_name, set(self._weighted)
            twin._found, twin._shared, twin._serving = self._found, self._shared, self._serving
        return twin

    def get(self, name: str, version: str = "") -> RegisteredAgent:
        """The agent of that name; without a version the one that serves, or else the newest.

        Raises:
            NotFound: there is no such agent or version.
        """
        agent = self.exactly(name, version) if version else self.find(name)
        if agent is None:
            raise NotFound(f"there is no agent {' '.join(filter(None, (name, version)))}", agent=name)
        return agent

    def find(self, name: str) -> RegisteredAgent | None:
        """As `get` without a version, but None when there is no such agent."""
        return self._found.get(name)

    def exactly(self, name: str, version: str) -> RegisteredAgent | None:
        """That version of an agent, in service or not; None when there is no such one."""
        return self._by_name.get(name, {}).get(version)

    def choose(self, name: str, key: str, *, keep: str = "", avoid: str = "") -> RegisteredAgent | None:
        """The version that does the work of one task; None when there is no such agent.

        The same key always gets the same version as long as the versions and weights are the same. When every
        version is out of service it is one of those, as with `find`.

        Args:
            name: The agent's name.
            key: Of the task.
            keep: A version that the task has used: it stays, as long as it is in service.
            avoid: A version that has just failed: another one is taken, if another gets calls.
        """
        if keep and (kept := self.exactly(name, keep)) is not None and kept.enabled:
            return kept
        shares = self._shared.get(name)
        if shares is None:
            return self._found.get(name)
        if avoid and (others := _shares_of(agent for agent in shares.agents if agent.spec.version != avoid)):
            shares = others
        return shares.at(key)

    def versions(self, name: str) -> tuple[RegisteredAgent, ...]:
        """Every version of a name, the oldest first; empty when there is no such agent."""
        return tuple(sorted(self._by_name.get(name, {}).values(), key=_order))

    def serving(self) -> tuple[RegisteredAgent, ...]:
        """The enabled agents, one version of each name (the one with the greatest weight), sorted by name."""
        return self._serving

    def all_versions(self) -> tuple[RegisteredAgent, ...]:
        """Every agent, also those out of service, sorted by name, then version."""
        return tuple(self._sorted())

    def with_capability(self, tag: str) -> tuple[RegisteredAgent, ...]:
        """The serving agents that have a capability tag."""
        return tuple(agent for agent in self.serving() if tag in agent.spec.capability_tags)

    def set_enabled(self, name: str, enabled: bool, *, version: str = "") -> None:
        """Take an agent out of service, or back in.

        Args:
            name: The agent.
            enabled: Whether it serves.
            version: Only this version; every one when empty.

        Raises:
            NotFound: there is no such agent or version.
        """
        with self._lock:
            if version:
                self.get(name, version)
            elif name not in self._by_name:
                raise NotFound(f"there is no agent {name}", agent=name)
            changed = {
                key: replace(agent, enabled=enabled) if version in ("", key) else agent
                for key, agent in self._by_name[name].items()
            }
            self._put(name, changed)

    def set_weights(self, name: str, weights: Mapping[str, int]) -> None:
        """Say how the calls of a name are shared among its versions; those that are not listed get none.

        Raises:
            NotFound: there is no such agent or version.
            InvalidRequest: a weight is not in 0..1000, or all are 0.
        """
        with self._lock:
            if name not in self._by_name:
                raise NotFound(f"there is no agent {name}", agent=name)
            for version, weight in weights.items():
                if not version:  # `get` would take the one that serves
                    raise InvalidRequest(f"a weight of {name} names no version", field="weights")
                self.get(name, version)
                if not 0 <= weight <= MAX_WEIGHT:
                    raise InvalidRequest(
                        f"weight {weight} of {name} {version} is not in 0..{MAX_WEIGHT}", field="weights"
                    )
            if not any(weights.values()):
                raise InvalidRequest(
                    f"some version of {name} needs a weight above 0; to take it out of service, disable it",
                    field="weights",
                )
            self._weighted.add(name)
            changed = {
                key: replace(agent, weight=weights.get(key, 0)) for key, agent in self._by_name[name].items()
            }
            self._put(name, changed)

    def has_weights(self, name: str) -> bool:
        """Whether the weights of a name were set, and are not simply the newest version's."""
        return name in self._weighted

    def _put(self, name: str, versions: dict[str, RegisteredAgent]) -> None:
        """Put new versions of a name in place; never changes a mapping that a reader may hold."""
        if versions and name not in self._weighted:
            newest = max(versions.values(), key=lambda agent: (agent.enabled, _order(agent)))
            versions = {
                key: replace(agent, weight=MAX_WEIGHT if agent is newest else 0) for key, agent in versions.items()
            }
        elif len(self._by_name.get(name, {})) < len(versions):
            added = versions.keys() - self._by_name.get(name, {}).keys()
            versions = {
                key: replace(agent, weight=0) if key in added else agent for key, agent in versions.items()
            }
        names = {key: value for key, value in self._by_name.items() if key != name}
        if versions:
            names[name] = versions
        self._by_name = names
        found = {key: _foremost(value.values()) for key, value in names.items()}
        self._found = dict(sorted(found.items()))
        self._shared = {
            key: shares
            for key, value in names.items()
            if len(value) > 1
            and (shares := _shares_of(sorted((item for item in value.values() if item.enabled), key=_order)))
        }
        self._serving = tuple(agent for agent in self._found.values() if agent.enabled)

    def _sorted(self) -> Iterator[RegisteredAgent]:
        by_name = self._by_name
        for name in sorted(by_name):
            yield from sorted(by_name[name].values(), key=_order)


def _foremost(versions: Iterable[RegisteredAgent]) -> RegisteredAgent:
    return max(versions, key=lambda agent: (agent.enabled, agent.weight, _order(agent)))


def _shares_of(agents: Iterable[RegisteredAgent]) -> _Shares | None:
    sharing = tuple(agent for agent in agents if agent.weight > 0)
    return _Shares(sharing, tuple(accumulate(agent.weight for agent in sharing))) if sharing else None


def _order(agent: RegisteredAgent) -> tuple[int, ...]:
    return tuple(int(part) for part in agent.spec.version.split("."))

"""How this machine can hold agents: with namespaces, else as another user, else only if the operator says so."""

import logging
import os

from agents.sandbox import kernel
from agents.sandbox.child import Child, ConfinementRefused, Program, WardenLost
from agents.spec import Limits
from podium.errors import AgentUnreachable

_LOG = logging.getLogger(__name__)


class Machine:
    """Starts wardens in the strongest way that there is; it finds out with the first which one that is."""

    def __init__(self, *, namespaces: bool = True, weak_isolation: bool = False) -> None:
        """Start nothing.

        Args:
            namespaces: False: do without, as on a machine that refuses them.
            weak_isolation: Run agents also where neither root nor namespaces keep this server's files from them.
        """
        self._namespaces = namespaces
        self._weak_isolation = weak_isolation
        self.isolation = ""
        """How agents are held, as `agents.sandbox.confinement` names it; empty before the first."""

    async def start(self, program: Program, limits: Limits, *, agent: str, streams: tuple[int, ...] = ()) -> Child:
        """Start a warden and its agent; see `Child.start`.

        Raises:
            AgentUnreachable: nothing can be started, or not so that it is held.
        """
        try:
            return await self._started(program, limits, agent, streams)
        except (WardenLost, ConfinementRefused) as error:
            raise AgentUnreachable(f"no process can be started for {agent}: {error}", agent=agent) from error

    async def _started(self, program: Program, limits: Limits, agent: str, streams: tuple[int, ...]) -> Child:
        if self._namespaces:
            try:
                child = await Child.start(program, limits, namespaces=True, streams=streams)
            except ConfinementRefused as error:
                _LOG.warning("this machine allows no namespaces, agents are isolated less: %s", error)
                self._namespaces = False
            else:
                self._tell(child)
                return child
        if os.geteuid() != 0:
            if not self._weak_isolation:
                raise AgentUnreachable(
                    f"{agent} is not started: this machine refuses namespaces to this user, so the agent "
                    "could read every file that the server can",
                    next_step="Allow unprivileged user namespaces, run the server as root, or accept it with the "
                    "setting agent_weak_isolation.",
                    agent=agent,
                )
            # The agent will be the same user as this server: nobody may read the server's environment or memory.
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        child = await Child.start(program, limits, namespaces=False, streams=streams)
        self._tell(child)
        return child

    def _tell(self, child: Child) -> None:
        if not self.isolation:
            self.isolation = child.isolation
            _LOG.info("agents' processes: %s, system calls filtered: %s", child.isolation, child.filtered)

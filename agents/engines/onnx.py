"""Run agents that are ONNX models: inputs become numbers, the model runs, its numbers become an output.

The model is the current version of an artefact and changes while the server runs, or it comes from the committed
list of packaged models (`pinned:NAME`). A version that is refused changes nothing (`tools.artefacts.serving`).
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.callables import resolve
from agents.engines.settings import OnnxSettings
from agents.invocation import Invocation, Resources
from agents.spec import AgentSpec
from podium.errors import (
    AgentCrashed,
    AgentTimeout,
    AgentUnreachable,
    InputContractBroken,
    OutputContractBroken,
    PodiumError,
)
from tools.artefacts.admission import Admission
from tools.artefacts.errors import ArtefactNotServing
from tools.artefacts.records import Name
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.serving import ModelSlot, ModelSource, PackagedModel, RegisteredModel, SlotState
from tools.models.pinned import PinnedModels, committed_models
from tools.onnx.interface import Interface
from tools.onnx.model import NonFinite, OnnxRunError, RunStop
from tools.onnx.trial import trial_inputs

MOST_MODELS = 32
"""So many are kept ready; beyond, the one asked longest ago is let go, and comes back with its next call."""
PACKAGED = "pinned:"
"""Before the name of a model of the committed list."""


class OnnxEngine:
    """Calls `before(inputs, context)`, the model, `after(outputs, inputs, context)` on a thread.

    Past its time limit the model is made to stop between two nodes of its graph, and the thread is free again.
    """

    def __init__(
        self,
        resources: Resources,
        *,
        registry: ArtefactRegistry,
        threads: int,
        packaged: PinnedModels | None = None,
        admission: Admission | None = None,
        most_models: int = MOST_MODELS,
    ) -> None:
        """Start without models; they come with the first calls, or with `warm`.

        Args:
            resources: What agents share; put into the context of every call.
            registry: Where models that are artefacts come from.
            threads: How many calls run at once.
            packaged: The list of reviewed models; the committed one unless given.
            admission: How models are looked at and tried before they serve.
            most_models: How many are kept ready: every manifest that is tried may name another one.
        """
        self._resources = resources
        self._registry = registry
        self._packaged = packaged or committed_models()
        self._admission = admission
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="onnx-agent")
        self._most_models = most_models
        self._slots: dict[str, ModelSlot] = {}
        """The one asked longest ago first."""
        self._making = threading.Lock()

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`.

        Raises:
            AgentUnreachable: no version of its model could be loaded; `evidence` says why for each.
            InputContractBroken: a number that is fed is NaN or infinite.
            OutputContractBroken: a number that comes out is.
            AgentTimeout, AgentCrashed: as for every engine.
        """
        name, call = invocation.spec.name, _Call()
        run = contextvars.copy_context().run
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(invocation.time_limit.total_seconds()):
                return await loop.run_in_executor(self._pool, run, self._run, invocation, call)
        except TimeoutError as error:
            raise AgentTimeout(
                f"{name} did not answer within {invocation.time_limit.total_seconds():g} s", agent=name
            ) from error
        finally:
            # Also when the step was cancelled: nobody waits for the answer any more.
            call.stop()

    async def warm(self, specs: Iterable[AgentSpec]) -> None:
        """Load models before somebody waits for their first call; those that are refused are logged.

        Args:
            specs: Agents of this engine.
        """
        for spec in specs:
            slot = self._slot(OnnxSettings.model_validate(dict(spec.settings)))
            await asyncio.get_running_loop().run_in_executor(self._pool, slot.refresh)

    def state_of(self, spec: AgentSpec) -> SlotState | None:
        """What serves an agent and what is refused for it; None while its model is not kept ready.

        Agents that ask other things of the same model have states of their own: one may be refused what the other
        is served.

        Args:
            spec: An agent of this engine.
        """
        key = _key(OnnxSettings.model_validate(dict(spec.settings)))
        with self._making:
            slot = self._slots.get(key)
        return None if slot is None else slot.state

    def close(self) -> None:
        """Take no more calls and follow no more models; a version that is being made ready is waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._making:
            slots = tuple(self._slots.values())
            self._slots.clear()
        for slot in slots:
            slot.close()

    def _run(self, invocation: Invocation, call: "_Call") -> Any:
        spec, inputs = invocation.spec, invocation.inputs
        settings = OnnxSettings.model_validate(dict(spec.settings))
        context = replace(invocation.context, resources=self._resources)
        slot = self._slot(settings)
        if slot.state.serving is None:
            slot.refresh()
        feeds = _feeds(_guarded(spec, _function(settings.before), inputs, context), spec)
        outputs = _outputs(spec, slot, feeds, call)
        return _guarded(spec, _function(settings.after), outputs, inputs, context)

    def _slot(self, settings: OnnxSettings) -> ModelSlot:
        """The slot of a model; agents that ask the same of the same model share one."""
        key = _key(settings)
        with self._making:
            slot = self._slots.pop(key, None)
            if slot is None:
                slot = ModelSlot(
                    self._source(settings),
                    expected=_expected(settings),
                    admission=self._admission,
                    threads=settings.threads,
                )
                slot.follow()
            self._slots[key] = slot
            if len(self._slots) > self._most_models:
                self._slots.pop(next(iter(self._slots))).stop_following()
            return slot

    def _source(self, settings: OnnxSettings) -> ModelSource:
        if settings.model.startswith(PACKAGED):
            name, inputs = settings.model.removeprefix(PACKAGED), trial_inputs(settings.trial)
            return PackagedModel(models=self._packaged, name=name, inputs=inputs)
        return RegisteredModel(registry=self._registry, name=Name(kind="model", name=settings.model))


class _Call:
    """One run that can be stopped, also before it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: RunStop | None = None
        self._stopped = False

    def begin(self) -> RunStop:
        # Made here and not with the call: it imports the runtime, which is not for the event loop.
        with self._lock:
            self._stop = RunStop()
            if self._stopped:
                self._stop.stop()
            return self._stop

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._stop is not None:
                self._stop.stop()


def _key(settings: OnnxSettings) -> str:
    """What agents that share a slot have in common."""
    return settings.model_dump_json(include={"model", "inputs", "outputs", "trial", "threads"})


@cache
def _function(name: str) -> Callable[..., Any]:
    return resolve(name)


def _expected(settings: OnnxSettings) -> Interface | None:
    if settings.inputs is None or settings.outputs is None:
        return None
    return Interface.from_json({"inputs": settings.inputs, "outputs": settings.outputs})


def _guarded(spec: AgentSpec, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except PodiumError:
        raise
    except BaseException as error:  # a function that calls sys.exit() must not end the server
        raise AgentCrashed(
            f"{spec.name} raised {type(error).__name__}: {str(error)[:300]}", agent=spec.name
        ) from error


def _feeds(made: Any, spec: AgentSpec) -> dict[str, NDArray[Any]]:
    if not isinstance(made, Mapping) or not all(isinstance(item, np.ndarray) for item in made.values()):
        raise AgentCrashed(f"{spec.name}: its function `before` gave no arrays by input name", agent=spec.name)
    return {str(name): item for name, item in made.items()}


def _outputs(
    spec: AgentSpec, slot: ModelSlot, feeds: Mapping[str, NDArray[Any]], call: _Call
) -> dict[str, NDArray[Any]]:
    try:
        return slot.run(feeds, stop=call.begin())
    except ArtefactNotServing as error:
        raise AgentUnreachable(
            f"{spec.name} has no model: {error.message}",
            next_step=error.next_step,
            evidence=error.evidence,
            agent=spec.name,
        ) from error
    except NonFinite as error:
        kind = InputContractBroken if error.field == "input" else OutputContractBroken
        raise kind(error.message, agent=spec.name) from error
    except OnnxRunError as error:
        raise AgentCrashed(error.message[:1000], next_step=error.next_step, agent=spec.name) from error

"""The server's metrics for Prometheus. No label ever holds a name, an id or a text of a caller.

Labels take their values from closed lists: agents of the registry (so many and no more), codes of the error
catalogue, methods of podium.v1. Anything else is counted as "other".
"""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from cloud.telemetry.now import Now
from podium.errors import catalogue

AGENTS_AT_MOST = 500
_OTHER = "other"
_TASK_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
_STEP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Every metric of one server."""

    def __init__(self, known_agent: Callable[[str], bool], *, process: bool = True) -> None:
        """Begin at zero.

        Args:
            known_agent: whether the registry has an agent of that name.
            process: also tell of the process itself: memory, processor time, open files.
        """
        self._known_agent = known_agent
        self._agents: set[str] = set()
        self._codes = frozenset(catalogue())
        self.registry = registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
            GCCollector(registry=registry)
        self._accepted = Counter(
            "podium_tasks_accepted", "Tasks taken in, by where they came from.", ["origin"], registry=registry
        )
        self._ended = Counter("podium_tasks_ended", "Tasks that ended.", ["status"], registry=registry)
        self._task_seconds = Histogram(
            "podium_task_duration_seconds",
            "From acceptance to the end.",
            ["status"],
            buckets=_TASK_SECONDS,
            registry=registry,
        )
        self._steps = Counter(
            "podium_steps",
            "Attempts at steps that ended; code is empty for those that succeeded.",
            ["agent", "outcome", "code"],
            registry=registry,
        )
        self._step_seconds = Histogram(
            "podium_step_duration_seconds",
            "Time of one attempt at a step.",
            ["agent"],
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self._recoveries = Counter(
            "podium_step_recoveries",
            "What was done about attempts that failed: retry, substitute, replan and so on.",
            ["recovery"],
            registry=registry,
        )
        self._plans = Counter(
            "podium_plans",
            "Plans, by planner and whether they were adopted.",
            ["planner", "outcome"],
            registry=registry,
        )
        self._calls = Counter("podium_rpcs", "Calls that ended.", ["method", "code"], registry=registry)
        self._call_seconds = Histogram(
            "podium_rpc_duration_seconds",
            "Time of calls with one answer.",
            ["method"],
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self._streams = Gauge("podium_streams_open", "Streams open now.", ["method"], registry=registry)
        self._commits = Counter(
            "podium_bus_commits", "Transactions of the event log, by outcome.", ["outcome"], registry=registry
        )
        self._commit_seconds = Histogram(
            "podium_bus_commit_duration_seconds",
            "Time until an append to the event log was on disk.",
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self._queue_depth = Gauge("podium_queue_tasks", "Runnable tasks that no worker holds.", registry=registry)
        self._queue_age = Gauge(
            "podium_queue_oldest_seconds", "How long the oldest of them has waited.", registry=registry
        )
        self._devices = Gauge("podium_devices_online", "Connected devices.", registry=registry)
        self._blob_bytes = Gauge("podium_blobs_bytes", "Bytes of stored blobs.", registry=registry)
        self._spans = Counter(
            "podium_spans", "Spans of traces, exported or dropped.", ["outcome"], registry=registry
        )
        self._spans_before = Now()

    def task_accepted(self, origin: str) -> None:
        """A task was taken in: of a "caller" or a "device"."""
        self._accepted.labels(origin).inc()

    def task_ended(self, status: str, seconds: float | None) -> None:
        """A task ended."""
        self._ended.labels(status).inc()
        if seconds is not None:
            self._task_seconds.labels(status).observe(max(0.0, seconds))

    def step_ended(self, agent: str, outcome: str, code: str, seconds: float) -> None:
        """An attempt at a step ended."""
        name = self._agent(agent)
        self._steps.labels(name, outcome, self._code(code)).inc()
        self._step_seconds.labels(name).observe(max(0.0, seconds))

    def recovered(self, recovery: str) -> None:
        """Something was decided about a failed attempt."""
        self._recoveries.labels(recovery).inc()

    def planned(self, planner: str, outcome: str) -> None:
        """A plan was adopted or refused."""
        self._plans.labels(planner if planner in PLANNERS else _OTHER, outcome).inc()

    def call_began(self, method: str, *, streams: bool) -> None:
        """A call is being served."""
        if streams:
            self._streams.labels(method).inc()

    def call_ended(self, method: str, code: str, seconds: float, *, streams: bool) -> None:
        """A call was served."""
        self._calls.labels(method, code).inc()
        if streams:
            self._streams.labels(method).dec()
        else:
            self._call_seconds.labels(method).observe(seconds)

    def committed(self, outcome: str, seconds: float) -> None:
        """The event log took events, or did not."""
        self._commits.labels(outcome).inc()
        self._commit_seconds.observe(seconds)

    def page(self, now: Now) -> bytes:
        """All of them, in Prometheus' text format."""
        self._queue_depth.set(now.queue_depth)
        self._queue_age.set(max(0.0, now.queue_age.total_seconds()))
        self._devices.set(now.devices_online)
        self._blob_bytes.set(now.blob_bytes)
        before, self._spans_before = self._spans_before, now
        self._spans.labels("exported").inc(max(0, now.spans_exported - before.spans_exported))
        self._spans.labels("dropped").inc(max(0, now.spans_dropped - before.spans_dropped))
        return generate_latest(self.registry)

    def described(self) -> Mapping[str, tuple[str, str, tuple[str, ...]]]:
        """Name to kind, meaning and labels of every metric of Podium's own."""
        found = {}
        for value in vars(self).values():
            if isinstance(value, Counter | Gauge | Histogram):
                metric = next(iter(value.describe()))
                name = metric.name + ("_total" if metric.type == "counter" else "")
                found[name] = (metric.type, metric.documentation, value._labelnames)
        return found

    def _agent(self, name: str) -> str:
        if name in self._agents:
            return name
        # Names of agents that come and go must not fill the memory of whoever scrapes.
        if len(self._agents) >= AGENTS_AT_MOST or not self._known_agent(name):
            return _OTHER
        self._agents.add(name)
        return name

    def _code(self, code: str) -> str:
        if code and code not in self._codes:
            self._codes = frozenset(catalogue())  # a package that was loaded late has codes of its own
        return code if not code or code in self._codes else _OTHER


PLANNERS = frozenset({"rules", "policy", "llm", "hybrid", "revision", "conductor"})

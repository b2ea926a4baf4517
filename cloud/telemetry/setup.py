"""Telemetry of one server, from its settings: where spans go, whether metrics are counted, and who serves them."""

import logging
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Self

from agents.registry import AgentRegistry
from cloud.settings import Settings
from cloud.telemetry.metrics_page import MetricsPage
from cloud.telemetry.now import Now
from cloud.telemetry.observed_bus import ObservedBus
from conductor.bus import EventBus
from podium.telemetry import record_spans_with
from podium.telemetry.exporting import Destination, SpanExport, SpanFile

if TYPE_CHECKING:
    from cloud.telemetry.metrics import Metrics

_LOG = logging.getLogger(__name__)

SERVICE = "podium-server"
_LAST_SPANS_WITHIN = timedelta(seconds=2)


class Telemetry:
    """Made by `open`; `close` delivers what waits."""

    def __init__(self, export: SpanExport | None, metrics: "Metrics | None") -> None:
        """Use `open`."""
        self._export = export
        self._page: MetricsPage | None = None
        self.metrics = metrics
        """None when nobody asked for metrics."""
        self.metrics_address = ""
        """HOST:PORT of the metrics page, once it is served."""

    @classmethod
    def open(cls, settings: Settings, registry: AgentRegistry) -> Self:
        """Start exporting spans, if the settings say where to.

        Raises:
            InvalidRequest: a destination cannot be used.
        """
        destinations: list[Destination] = []
        if settings.traces_file is not None:
            destinations.append(SpanFile(settings.traces_file, service=SERVICE))
        if settings.otlp_endpoint:
            from podium.telemetry.otlp import OtlpCollector  # the SDK takes 100 ms that nobody else should pay

            destinations.append(
                OtlpCollector(
                    settings.otlp_endpoint,
                    service=SERVICE,
                    version=version("podium"),
                    instance=str(os.getpid()),
                    insecure=settings.otlp_insecure,
                    ca=settings.otlp_ca,
                )
            )
        export = SpanExport(destinations) if destinations else None
        if export is not None:
            record_spans_with(export.record)
        metrics = None
        if settings.metrics_listen:
            from cloud.telemetry.metrics import Metrics

            metrics = Metrics(lambda name: registry.find(name) is not None)
        return cls(export, metrics)

    def observed(self, bus: EventBus) -> EventBus:
        """The bus to work with: the one given when nothing is told to anybody."""
        if self._export is None and self.metrics is None:
            return bus
        return ObservedBus(bus, self.metrics)

    async def serve_metrics(self, wanted: str, look: Callable[[Now], Awaitable[Now]]) -> None:
        """Serve the metrics page, if metrics are counted.

        Args:
            wanted: HOST:PORT.
            look: adds what the server knows at the moment.

        Raises:
            AddressUnavailable: it cannot listen there.
        """
        metrics = self.metrics
        if metrics is None:
            return

        async def page() -> bytes:
            return metrics.page(await look(self._spans()))

        self._page = MetricsPage(page)
        self.metrics_address = await self._page.listen(wanted)
        _LOG.info("metrics are served on %s", self.metrics_address)

    def close(self) -> None:
        """Deliver the last spans, but wait for nobody for long."""
        if self._page is not None:
            self._page.close()
        if self._export is not None:
            record_spans_with(None)
            self._export.close(within=_LAST_SPANS_WITHIN)

    def _spans(self) -> Now:
        if self._export is None:
            return Now()
        return Now(spans_exported=self._export.exported, spans_dropped=self._export.dropped)

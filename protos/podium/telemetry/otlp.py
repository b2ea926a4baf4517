"""Send spans to an OpenTelemetry collector over gRPC; the only module that needs the OpenTelemetry SDK."""

import logging
from collections.abc import Sequence
from pathlib import Path

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from podium.errors import InvalidRequest
from podium.link import is_loopback
from podium.telemetry.exporting import attributes_of, service_of
from podium.telemetry.redaction import redacted
from podium.telemetry.spans import FinishedSpan

_ATTEMPT_S = 5.0
"""How long one delivery may take; meanwhile spans wait in the queue."""
_KINDS = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
_SCOPE = InstrumentationScope("podium")


class OtlpCollector:
    """One collector."""

    def __init__(
        self, endpoint: str, *, service: str, version: str, instance: str, insecure: bool, ca: Path | None = None
    ) -> None:
        """Connect when the first spans come.

        Args:
            endpoint: HOST:PORT.
            service: the process's role: podium-server, podium-agent-host.
            version: of the software.
            instance: tells processes of one role apart.
            insecure: without TLS; on loopback only.
            ca: PEM file of the authority behind the collector's certificate; the system's when None.

        Raises:
            InvalidRequest: spans would leave the machine in clear, or the file cannot be read.
        """
        host = endpoint.rpartition(":")[0].strip("[]")
        if insecure and not is_loopback(host):
            raise InvalidRequest(
                f"{endpoint} is not on this machine, so spans are only sent to it with TLS", field="otlp_insecure"
            )
        # It tells of every failed attempt, with what the collector answered; how much was lost is counted here.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._service = service
        self._own = Resource(
            {"service.name": service, "service.version": version, "service.instance.id": instance}
        )
        self._exporter = OTLPSpanExporter(
            endpoint=endpoint,
            insecure=insecure,
            credentials=None if insecure else grpc.ssl_channel_credentials(_pem(ca)),
            timeout=_ATTEMPT_S,
        )

    def write(self, spans: Sequence[FinishedSpan]) -> bool:
        """See `podium.telemetry.exporting.Destination`."""
        try:
            return self._exporter.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS
        except Exception:  # noqa: BLE001 - whatever it is, it costs these spans, and is counted
            return False

    def close(self) -> None:
        """See `podium.telemetry.exporting.Destination`."""
        self._exporter.shutdown()

    def _readable(self, span: FinishedSpan) -> ReadableSpan:
        trace_id = int(span.context.trace_id, 16)
        parent = int(span.parent_span_id, 16) if span.parent_span_id else 0
        return ReadableSpan(
            redacted(span.name),
            context=_context(trace_id, int(span.context.span_id, 16)),
            parent=_context(trace_id, parent) if parent else None,
            resource=self._resource(span),
            attributes=attributes_of(span),
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR if span.error_code else StatusCode.UNSET),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=_SCOPE,
        )

    def _resource(self, span: FinishedSpan) -> Resource:
        if not span.device_id:
            return self._own
        named = {"service.name": service_of(span, self._service), "service.instance.id": redacted(span.device_id)}
        return Resource(named)


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _pem(ca: Path | None) -> bytes | None:
    if ca is None:
        return None
    try:
        return ca.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{ca} cannot be read: {error.strerror}", field="otlp_ca") from error

"""Have the spans of a process go somewhere for as long as it serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from podium.errors import InvalidRequest
from podium.link import is_loopback
from podium.telemetry.exporting import Destination, SpanExport, SpanFile
from podium.telemetry.spans import record_spans_with

_LAST_SPANS_WITHIN = timedelta(seconds=2)


@contextmanager
def sending_spans(
    service: str,
    *,
    version: str,
    instance: str,
    otlp: str = "",
    otlp_ca: Path | None = None,
    file: Path | None = None,
) -> Iterator[None]:
    """Export what is recorded inside; nothing when no destination is given.

    Args:
        service: the process's role, e.g. podium-agent-host.
        version: of the software.
        instance: tells processes of one role apart.
        otlp: HOST:PORT of a collector; in clear on loopback without `otlp_ca`, with TLS elsewhere.
        otlp_ca: PEM file of the authority behind the collector's certificate.
        file: spans are appended to it as JSON lines.

    Raises:
        InvalidRequest: a destination cannot be used.
    """
    destinations: list[Destination] = []
    if file is not None:
        destinations.append(SpanFile(file, service=service))
    if otlp:
        destinations.append(_collector(otlp, otlp_ca, service, version, instance))
    if not destinations:
        yield
        return
    export = SpanExport(destinations)
    record_spans_with(export.record)
    try:
        yield
    finally:
        record_spans_with(None)
        export.close(within=_LAST_SPANS_WITHIN)


def _collector(otlp: str, ca: Path | None, service: str, version: str, instance: str) -> Destination:
    try:
        from podium.telemetry.otlp import OtlpCollector
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"spans cannot be sent to {otlp}: {error.name} is not installed",
            next_step="Install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-grpc, or write a file.",
            field="otlp",
        ) from error
    host, separator, port = otlp.rpartition(":")
    if not separator or not host or not port.isdecimal():
        raise InvalidRequest(f"{otlp!r} is not HOST:PORT", field="otlp")
    insecure = ca is None and is_loopback(host.strip("[]"))
    return OtlpCollector(otlp, service=service, version=version, instance=instance, insecure=insecure, ca=ca)

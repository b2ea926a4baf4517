"""A real OTLP collector: it keeps every byte that comes, and the spans in them."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@dataclass(frozen=True)
class Seen:
    """One span."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Any] = field(hash=False)


@dataclass
class Collector:
    """What has come so far."""

    address: str = ""
    received: list[bytes] = field(default_factory=list)
    spans: list[Seen] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    """Unset: calls hang until it is set."""

    def take(self, data: bytes) -> bytes:
        self.hold.wait(60)
        self.received.append(data)
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(data)
        for resource in request.resource_spans:
            named = _values(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [
                    Seen(
                        service=named["service.name"],
                        name=span.name,
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        kind=span.kind,
                        start_ns=span.start_time_unix_nano,
                        end_ns=span.end_time_unix_nano,
                        attributes=_values(span.attributes),
                    )
                    for span in scope.spans
                ]
        return trace_service_pb2.ExportTraceServiceResponse().SerializeToString()

    def until(self, enough: Callable[[list[Seen]], bool], *, seconds: float = 30) -> list[Seen]:
        """The spans, once there are enough."""
        ends = time.monotonic() + seconds
        while not enough(list(self.spans)):
            assert time.monotonic() < ends, sorted((span.service, span.name) for span in self.spans)
            time.sleep(0.05)
        return list(self.spans)


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


@contextmanager
def collecting(*, hanging: bool = False) -> Iterator[Collector]:
    """A collector on loopback."""
    collector = Collector()
    if not hanging:
        collector.hold.set()
    server = grpc.server(ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(lambda data, _: collector.take(data))
    service, _, method = EXPORT[1:].partition("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    collector.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collector
    finally:
        collector.hold.set()
        server.stop(0).wait(10)

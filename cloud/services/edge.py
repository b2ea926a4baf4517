"""`EdgeService`: one stream a device."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import grpc

from cloud.auth.principal import current_principal
from cloud.devices import DeviceHub
from podium.errors import PermissionDenied
from podium.v1 import edge_pb2, edge_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class EdgeService(edge_pb2_grpc.EdgeServiceServicer):
    """See `podium/v1/edge.proto`."""

    def __init__(self, hub: DeviceHub) -> None:
        self._hub = hub

    async def Connect(  # noqa: N802 - gRPC's name
        self, request_iterator: AsyncIterator[edge_pb2.ConnectRequest], context: Context
    ) -> AsyncIterator[edge_pb2.ConnectResponse]:
        """Observations up, acknowledgements and steps down, until either side ends it."""
        principal = current_principal()
        # On a server without credentials anybody on this machine may stand in for a device.
        requests = _only_as(principal.name, request_iterator) if principal.is_device else request_iterator
        # It is a generator, and closed at once when the device goes away while it is being written to.
        serving = cast("AsyncGenerator[edge_pb2.ConnectResponse, None]", self._hub.connect(requests))
        async with aclosing(serving) as responses:
            async for response in responses:
                yield response


async def _only_as(
    name: str, requests: AsyncIterator[edge_pb2.ConnectRequest]
) -> AsyncIterator[edge_pb2.ConnectRequest]:
    """What a device sends, as long as it says that it is who its certificate says."""
    async for request in requests:
        if request.HasField("hello") and request.hello.device_id != name:
            raise PermissionDenied(
                f"the certificate is that of device {name}; it may not connect under another name",
                next_step=f"Connect as {name}, or enrol under the other name.",
            )
        yield request

"""`EdgeService`: one stream a device."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from cloud.devices import DeviceHub
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
        async for response in self._hub.connect(request_iterator):
            yield response

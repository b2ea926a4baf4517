"""What a remote agent is written with: a function and its manifest become an agent that a Podium server can call.

::

    host = AgentHost(listen="0.0.0.0:7500", identity=Path("identity"))

    @host.agent(manifest="weather.yaml")
    def weather(inputs, context):
        return {"celsius": 21, "confidence_score": 0.9, "sources": [...]}

    host.run()

It needs gRPC and protobuf; PyYAML for manifests in YAML, jsonschema_rs to check what goes in and out. A host
listens; one that cannot be connected to (behind a NAT) is not supported.
"""

from podium.agent_host.context import CallContext
from podium.agent_host.errors import HostBusy, HostDraining, IdempotencyKeyReused, OutcomeUnknown, SchemaMismatch
from podium.agent_host.host import AgentHost

__all__ = [
    "AgentHost",
    "CallContext",
    "HostBusy",
    "HostDraining",
    "IdempotencyKeyReused",
    "OutcomeUnknown",
    "SchemaMismatch",
]

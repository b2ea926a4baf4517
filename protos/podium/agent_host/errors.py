"""What an agent host refuses, one error each; the engine `grpc` knows them by their codes."""

from grpc import StatusCode

from podium.errors import AgentError, ServerUnavailable


class SchemaMismatch(AgentError):
    """Caller and host have different schemas of an agent; the message names both hashes."""

    code = "AGENT_SCHEMA_MISMATCH"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Give the host and the server the same manifest, and raise its version with every change of a schema."


class HostAddressUnavailable(ServerUnavailable):
    """The host cannot listen where it was told to."""

    code = "HOST_ADDRESS_UNAVAILABLE"
    advice = "Choose another HOST:PORT; port 0 takes a free one."


class HostDraining(ServerUnavailable):
    """The host stops: it finishes what it runs and takes nothing new."""

    code = "HOST_DRAINING"
    advice = "Nothing was run. Another host takes over meanwhile; the call can be repeated when this one is back."


class HostBusy(ServerUnavailable):
    """The host runs as many calls as it may, and enough wait already."""

    code = "HOST_BUSY"
    advice = "Nothing was run. Start another host for the agent, or give this one more threads."


class IdempotencyKeyReused(AgentError):
    """A key that names one write came with the inputs of another."""

    code = "IDEMPOTENCY_KEY_REUSED"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Use a new key for every write; only a repetition of the same call has the same key."


class OutcomeUnknown(AgentError):
    """The host ended while a write ran, so it may or may not have happened."""

    code = "OUTCOME_UNKNOWN"
    advice = (
        "See whether the write happened. An agent that may safely be run again under its key declares "
        "`settings.idempotent: true` in its manifest."
    )

"""How everybody connects: an address, TLS by default, credentials, keepalive that notices a dead peer."""

from podium.link.addresses import Address, is_loopback, unreachable
from podium.link.channels import (
    DEFAULT_DEADLINE,
    MAX_MESSAGE_BYTES,
    async_channel,
    channel_options,
    sync_channel,
)
from podium.link.machine import IdentityUnusable, MachineIdentity

__all__ = [
    "DEFAULT_DEADLINE",
    "MAX_MESSAGE_BYTES",
    "Address",
    "IdentityUnusable",
    "MachineIdentity",
    "async_channel",
    "channel_options",
    "is_loopback",
    "sync_channel",
    "unreachable",
]

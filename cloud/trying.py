"""The engines of a server without the server: for a command that runs agents here, once."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from agents.engines.grpc import GrpcEngine
from agents.engines.onnx import OnnxEngine
from agents.engines.process import ProcessEngine
from agents.engines.python import PythonEngine
from agents.invocation import Engine, Invocation
from agents.pack import build_resources
from agents.specialists.logger import RESOURCE as AUDIT_LOG
from cloud.app import BLOBS
from cloud.audit import LedgerAuditLog
from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobStore
from cloud.engines import build_engines, close_engines
from cloud.registrations import REGISTRATIONS, Registrations
from cloud.settings import Settings
from cloud.specialists import Specialists
from podium.errors import AgentUnreachable, DeviceOffline
from tools.artefacts.registry import FOLDER as ARTEFACTS
from tools.artefacts.registry import ArtefactRegistry

_BLOBS_BYTES = 2**20
_THREADS = 2


@asynccontextmanager
async def engines_here(
    specialists: Specialists, settings: Settings, scratch: Path
) -> AsyncIterator[Mapping[str, Engine]]:
    """Every engine, with the models of the data directory; what agents write goes to the scratch folder.

    Args:
        specialists: whose resources agents get.
        settings: of the data directory.
        scratch: an empty folder.
    """
    async with AsyncExitStack() as exits:
        audit_log = LedgerAuditLog(scratch / "audit", clock=_now)
        exits.callback(audit_log.close)
        limits = BlobLimits(blob_bytes=_BLOBS_BYTES, all_bytes=_BLOBS_BYTES)
        blobs = BlobStore(scratch / "blobs", limits, clock=_now)
        exits.callback(blobs.close)
        resources = build_resources(specialists.packs, scratch, {AUDIT_LOG: audit_log, BLOBS: blobs})
        python = PythonEngine(resources, threads=_THREADS)
        exits.callback(python.close)
        kept = settings.data / ARTEFACTS
        artefacts = ArtefactRegistry(kept if kept.is_dir() else scratch / ARTEFACTS, clock=_now)
        exits.callback(artefacts.close)
        onnx = OnnxEngine(resources, registry=artefacts, threads=_THREADS)
        exits.callback(onnx.close)
        process = ProcessEngine(
            max_processes=settings.agent_processes, weak_isolation=settings.agent_weak_isolation
        )
        hosts = GrpcEngine(_no_certificate)
        engines = build_engines(python, _NoDevices(), onnx, process, hosts, os.environ, settings.allowed_hosts)
        exits.push_async_callback(close_engines, engines)
        yield engines


def add_registered(specialists: Specialists, settings: Settings, scratch: Path) -> tuple[str, ...]:
    """Put the agents that were registered with the server of a data directory beside those of the packs.

    Args:
        specialists: changed by this.
        settings: of the data directory.
        scratch: an empty folder.

    Returns:
        What was left out and why, in words.

    Raises:
        DatabaseCorrupt: the file that they are kept in is damaged.
    """
    path = settings.data / REGISTRATIONS
    if not path.is_file():
        return ()
    audit_log = LedgerAuditLog(scratch / "registered-audit", clock=_now)
    try:
        registrations = Registrations(path, specialists.registry, audit_log, clock=_now, new_id=str)
        try:
            return registrations.load(settings.foreign_policy)
        finally:
            registrations.close()
    finally:
        audit_log.close()


def _now() -> datetime:
    return datetime.now(UTC)


def _no_certificate() -> NoReturn:
    raise AgentUnreachable(
        "agent hosts are shown the certificate of a server, and this command has none",
        next_step="Try the agent through the server, with --server.",
    )


class _NoDevices:
    """No device is connected to a command."""

    def online(self, device_id: str) -> bool:
        return False

    async def invoke(self, device_id: str, invocation: Invocation) -> Any:
        raise DeviceOffline(f"device {device_id} is not connected", agent=invocation.spec.name)

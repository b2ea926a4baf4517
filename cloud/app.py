"""The cloud in one process: bus, blobs, agents, workers and gRPC server, put together here and nowhere else."""

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.engines.grpc import GrpcEngine
from agents.engines.onnx import OnnxEngine
from agents.engines.process import ProcessEngine
from agents.engines.python import PythonEngine
from agents.pack import build_resources
from agents.specialists.logger import RESOURCE as AUDIT_LOG
from cloud.access import Access
from cloud.agent_problems import AgentProblems
from cloud.artefact_audit import ArtefactAudit
from cloud.audit import FOLDER as AUDIT_FOLDER
from cloud.audit import LedgerAuditLog
from cloud.blobs.garbage import GarbageCollector
from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobStore
from cloud.bus.embedded import EmbeddedBus
from cloud.contents import KEPT, check_contents, note_contents
from cloud.devices import DeviceHub
from cloud.engines import build_engines, close_engines
from cloud.inbox import SqliteInbox
from cloud.intake import Intake
from cloud.lock import DataLock
from cloud.machines import Machines
from cloud.planners import ServedPlanner, planner_serving
from cloud.registering import Registrar, trial_settings
from cloud.registrations import REGISTRATIONS, Registrations
from cloud.reports import ReportingRunner
from cloud.services.blob import BlobService
from cloud.services.edge import EdgeService
from cloud.services.interceptor import GuardInterceptor
from cloud.services.registry import RegistryService
from cloud.services.review import ReviewService
from cloud.services.task import TaskService
from cloud.serving import SERVER_FILE, add_health_and_reflection, all_serving, announce, grpc_server, listen
from cloud.settings import Settings
from cloud.specialists import Specialists, load_specialists
from cloud.telemetry.now import Now
from cloud.telemetry.setup import Telemetry
from conductor.desk import TaskDesk
from conductor.waiting import Sweeper
from conductor.wiring import RunnerSettings, Wiring
from conductor.worker import Worker
from podium.errors import PodiumError
from podium.v1 import blob_pb2_grpc, edge_pb2_grpc, registry_pb2_grpc, review_pb2_grpc, task_pb2_grpc
from tools.artefacts.registry import FOLDER as ARTEFACTS
from tools.artefacts.registry import ArtefactRegistry
from tools.embeddings.minilm import MiniLmEmbedder
from tools.embeddings.multilingual import MultilingualEmbedder
from tools.embeddings.remembering import RememberingEmbedder
from tools.embeddings.routing import EmbedderRouter

_LOG = logging.getLogger(__name__)

BLOBS = "blobs"
"""Name under which agents that read attachments find the blob store among their resources."""
_STREAMS_END_WITHIN_S = 1.0
_WORKER_RESTARTS_AFTER_S = 1.0


class App:
    """A running server; an async context manager. Made by `build`."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        *,
        announced: bool = True,
        private_token: str = "",
    ) -> None:
        """Use `build`."""
        self._settings = settings
        self._announced = announced
        self._private_token = private_token
        self._clock = clock
        self._exits = AsyncExitStack()
        self.address = settings.listen
        """HOST:PORT, with the port that is really listened on once started."""
        self.machines_address = ""
        """HOST:PORT for machines with certificates, once started; '' when the server takes none."""
        self.metrics_address = ""
        """HOST:PORT of `GET /metrics`, once started; '' when nobody asked for metrics."""
        self.ca_file: Path | None = None
        """What clients trust the server by; None without TLS or with an operator's certificate."""
        self.bus: EmbeddedBus
        """The log, from the start on."""

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # In the reverse order of the start: stop leasing and drain, end streams, then flush and close the files.
        await self._exits.aclose()

    async def _start(self) -> None:
        settings, clock, data = self._settings, self._clock, self._settings.data
        lock = DataLock.acquire(data)
        self._exits.callback(lock.release)
        check_contents(data)
        # One that was killed has left word of where it listened.
        (data / SERVER_FILE).unlink(missing_ok=True)
        # The lock makes sure that nobody else uses the log, so leases found in it are those of the dead.
        self.bus = await EmbeddedBus.open(data / "events.sqlite", clock=clock, alone=True)
        self._exits.push_async_callback(self.bus.close)
        audit_log = LedgerAuditLog(data / AUDIT_FOLDER, clock=clock)
        self._exits.callback(audit_log.close)
        machines = Machines.open(settings, audit_log, clock)
        self._exits.callback(machines.close)
        self.ca_file = machines.ca_file
        access = Access.open(
            settings, clock, private_token=self._private_token, check_machine=machines.revocations.check
        )
        limits = BlobLimits(blob_bytes=settings.blob_max_bytes, all_bytes=settings.blobs_max_bytes)
        blobs = BlobStore(data / "blobs", limits, clock=clock, quotas=access.quotas)
        self._exits.callback(blobs.close)
        garbage = GarbageCollector(blobs, self.bus, clock=clock, grace=settings.blob_grace)
        specialists = load_specialists(settings.packs)
        registrations = Registrations(
            data / REGISTRATIONS, specialists.registry, audit_log, clock=clock, new_id=_new_id
        )
        self._exits.callback(registrations.close)
        registrations.load(settings.foreign_policy)
        telemetry = Telemetry.open(settings, specialists.registry)
        self._exits.callback(telemetry.close)
        bus = telemetry.observed(self.bus)
        resources = build_resources(specialists.packs, data, {AUDIT_LOG: audit_log, BLOBS: blobs})
        python = PythonEngine(resources, threads=settings.agent_threads)
        self._exits.callback(python.close)
        artefacts = ArtefactRegistry(data / ARTEFACTS, clock=clock)
        self._exits.callback(artefacts.close)
        onnx = OnnxEngine(resources, registry=artefacts, threads=settings.agent_threads)
        self._exits.callback(onnx.close)
        recording = ArtefactAudit(artefacts, audit_log)
        recording.start()
        self._exits.push_async_callback(recording.close)
        planners = ServedPlanner.open(settings, specialists, artefacts)
        self._exits.callback(planners.close)
        await planners.require(settings)
        desk = TaskDesk(bus, specialists.registry, clock)
        intake = Intake(
            desk,
            blobs,
            clock=clock,
            new_id=_new_id,
            task_limit=settings.task_limit,
            quotas=access.quotas,
        )
        inbox = await SqliteInbox.open(data / "inbox.sqlite")
        self._exits.push_async_callback(inbox.close)
        hub = DeviceHub(
            accept=intake.observe,
            clock=clock,
            software_version=version("podium"),
            inbox=inbox,
            on_contested=machines.contested,
        )
        process = ProcessEngine(
            max_processes=settings.agent_processes, weak_isolation=settings.agent_weak_isolation
        )
        hosts = GrpcEngine(machines.hosts)
        machines.on_host_revoked(hosts.trust_changed)
        engines = build_engines(python, hub, onnx, process, hosts, os.environ, settings.allowed_hosts)
        self._exits.push_async_callback(close_engines, engines)
        wiring = Wiring(
            bus=bus,
            registry=specialists.registry,
            engines=engines,
            planner=planners.planner,
            clock=clock,
            normalise=specialists.normalise,
            device_online=hub.online,
            # Their models are read when a text is first compared, not at the start.
            embedder=EmbedderRouter(
                english=RememberingEmbedder(MiniLmEmbedder()),
                multilingual=RememberingEmbedder(MultilingualEmbedder()),
            ),
            settings=RunnerSettings(max_interruptions=settings.max_interruptions),
        )
        guard = GuardInterceptor(
            call_limit=settings.call_limit,
            authentication=access.authentication,
            live=access.live,
            observer=telemetry.metrics,
        )
        server = grpc_server([guard])
        task_pb2_grpc.add_TaskServiceServicer_to_server(TaskService(self.bus, intake, desk), server)
        blob_pb2_grpc.add_BlobServiceServicer_to_server(
            BlobService(blobs, garbage, idle_limit=settings.upload_idle), server
        )
        edge_pb2_grpc.add_EdgeServiceServicer_to_server(EdgeService(hub), server)
        registrar = Registrar(
            specialists.registry,
            registrations,
            engines,
            policy=settings.foreign_policy,
            clock=clock,
            trial=trial_settings(settings.trial_inputs, settings.trial_seconds, settings.call_limit_seconds),
        )
        registry_pb2_grpc.add_RegistryServiceServicer_to_server(
            RegistryService(
                specialists.registry,
                registrations,
                registrar,
                AgentProblems(specialists.registry, registrations, onnx),
                lambda: planners.state,
            ),
            server,
        )
        review_pb2_grpc.add_ReviewServiceServicer_to_server(
            ReviewService(self.bus, specialists.registry, desk), server
        )
        machines.serve(
            server, access, audit_log, clock, lambda: settings.machines_address or self.machines_address
        )
        health_service = add_health_and_reflection(server)
        self.address = listen(server, settings.listen, machines.front)
        if machines.back is not None:
            self.machines_address = listen(
                server, settings.machines_listen, machines.back, machines_ca=machines.desk.ca_pem
            )
        note_contents(data, KEPT)
        await server.start()
        self._exits.push_async_callback(server.stop, _STREAMS_END_WITHIN_S)
        self._exits.callback(hub.close)
        keeping = asyncio.create_task(access.keep())
        self._exits.callback(keeping.cancel)
        noting = asyncio.create_task(machines.revocations.keep_flushed())
        self._exits.callback(noting.cancel)
        collecting = asyncio.create_task(garbage.keep_collecting(settings.blob_collect_every))
        self._exits.callback(collecting.cancel)
        await self._start_workers(wiring)
        self._exits.push_async_callback(health_service.enter_graceful_shutdown)
        await telemetry.serve_metrics(settings.metrics_listen, partial(self._look, hub, blobs))
        self.metrics_address = telemetry.metrics_address
        await all_serving(health_service)
        if self._announced:
            announced = announce(
                data,
                address=self.address,
                machines=self.machines_address,
                ca_file=self.ca_file,
                tls=not settings.insecure_loopback,
                token_file=access.token_file,
                metrics=self.metrics_address,
            )
            self._exits.callback(announced.unlink, missing_ok=True)
        self._warm(python, onnx, specialists)
        looking = asyncio.create_task(planner_serving(health_service, planners, load=self._announced))
        self._exits.callback(looking.cancel)

    def _warm(self, python: PythonEngine, onnx: OnnxEngine, specialists: Specialists) -> None:
        """Import functions and load models now that the server answers, so that no first caller waits for them."""
        specs = [agent.spec for agent in specialists.registry.serving()]
        functions = (str(spec.settings["callable"]) for spec in specs if spec.engine == "python")
        for warming in (python.warm(functions), onnx.warm(spec for spec in specs if spec.engine == "onnx")):
            self._exits.callback(asyncio.create_task(warming).cancel)

    async def _look(self, hub: DeviceHub, blobs: BlobStore, now: Now) -> Now:
        depth, age = await self.bus.backlog()
        return replace(
            now, queue_depth=depth, queue_age=age, devices_online=hub.connected, blob_bytes=blobs.stored_bytes
        )

    async def _start_workers(self, wiring: Wiring) -> None:
        settings = self._settings
        runner = ReportingRunner(wiring, settings.data / "reports")
        await runner.catch_up()
        workers = [
            Worker(
                wiring.bus,
                runner,
                worker_id=f"{socket.gethostname()}/{os.getpid()}/{number}",
                max_tasks=settings.tasks_per_worker,
                sweeper=Sweeper(wiring) if number == 0 else None,
                lease_duration=settings.lease,
                drain_limit=settings.grace,
            )
            for number in range(settings.workers)
        ]
        running = [asyncio.create_task(_keep_running(worker)) for worker in workers]

        async def drain() -> None:
            for worker in workers:
                worker.stop()
            # A worker that waits to be restarted does not hear `stop`.
            _, stuck = await asyncio.wait(running, timeout=(settings.grace + timedelta(seconds=2)).total_seconds())
            for task in stuck:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

        self._exits.push_async_callback(drain)


def build(
    settings: Settings,
    clock: Callable[[], datetime],
    *,
    announced: bool = True,
    private_token: str = "",
) -> App:
    """A server that is started by entering it and stopped by leaving it.

    Entering raises:
        DataDirectoryInUse: another server runs on the data directory.
        AddressUnavailable: the address is taken.
        DataMissing: something that the data directory had is gone.
        TlsFilesUnusable, DatabaseCorrupt, ManifestInvalid: what it needs from disk is not sound.

    Args:
        settings: what it is told; see `cloud.settings.load_settings`.
        clock: the present moment in UTC.
        announced: whether commands on this machine may find the server through its data directory.
        private_token: the one token that a server without TLS asks for, where one command runs it for itself.
    """
    return App(settings, clock, announced=announced, private_token=private_token)


async def _keep_running(worker: Worker) -> None:
    """Run a worker until it is stopped; a full disk or the like ends it only for a moment."""
    while True:
        try:
            await worker.run()
        except PodiumError as error:
            _LOG.error("a worker stopped and starts again: %s", error.code, exc_info=error)
            await asyncio.sleep(_WORKER_RESTARTS_AFTER_S)
        else:
            return


def _new_id() -> str:
    return str(uuid.uuid4())

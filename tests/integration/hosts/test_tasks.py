"""The whole path: a task of a real server, with a step on agent hosts, over TLS and not."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from podium.client import Client
from podium.identity.enrolling import enroll, renew
from podium.link import Address, MachineIdentity, sync_channel
from podium.status import task_status_name
from podium.v1 import agent_pb2, agent_pb2_grpc, event_pb2, identity_pb2, task_pb2
from tests.integration.hosts.ground import BEHAVING, HostProcess
from tests.integration.identity.ground import now, operator, tls_serving, token
from tests.integration.server import PACKS, ROOT, Running, serving

AGENT_HOST = identity_pb2.IDENTITY_KIND_AGENT_HOST
COUNT = PACKS / "relay" / "manifests" / "relay_count.yaml"


def pack(folder: Path, ports: Sequence[int], **settings: Any) -> Path:
    """The test pack, with `relay_count` on agent hosts and a stand-in for it in the server."""
    shutil.copytree(PACKS, folder / "packs")
    manifests = folder / "packs" / "relay" / "manifests"
    shipped = yaml.safe_load(COUNT.read_text())
    remote = shipped | {
        "engine": "grpc",
        "settings": {"endpoints": [f"127.0.0.1:{port}" for port in ports], **settings},
        "sla": {"timeout": 20, "retries": 2},
    }
    (manifests / COUNT.name).write_text(yaml.safe_dump(remote))
    (manifests / "relay_count_here.yaml").write_text(yaml.safe_dump(shipped | {"name": "relay_count_here"}))
    return folder / "packs"


@contextmanager
def counting(folder: Path, port: int, *options: str) -> Iterator[HostProcess]:
    """A host of `relay_count`."""
    log = folder / "host.log"
    with log.open("a") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "podium.cli", "host", "run", f"{BEHAVING}:count"),
                *("--manifest", str(folder / "packs" / "relay" / "manifests" / COUNT.name)),
                *("--listen", f"127.0.0.1:{port}", *(options or ("--insecure-loopback",))),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}", "HOSTS_FOLDER": str(folder)},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), log.read_text()
        yield HostProcess(process, line.split()[-1], log)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


@pytest.fixture
def ports() -> list[int]:
    """Two ports that nobody listens on just now."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        return [one.getsockname()[1] for one in taken]


def running_host(folder: Path, hosts: Sequence[HostProcess]) -> HostProcess:
    """The one that has been called."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        for host in hosts:
            if (folder / f"running-{host.pid}").exists():
                return host
        time.sleep(0.02)
    raise AssertionError("no host was called")


def finished(client: Client, task: task_pb2.Task) -> tuple[task_pb2.Task, list[event_pb2.Event]]:
    events = [response.event for response in client.watch(task.task_id)]
    return client.get(task.task_id), events


def failures(events: Sequence[event_pb2.Event]) -> list[event_pb2.StepFailed]:
    return [event.step_failed for event in events if event.WhichOneof("payload") == "step_failed"]


def agents_that_ran(events: Sequence[event_pb2.Event]) -> list[str]:
    return [event.step_started.agent for event in events if event.WhichOneof("payload") == "step_started"]


def test_a_host_is_killed_in_the_middle_of_a_step_and_another_finishes_it(
    tmp_path: Path, ports: list[int]
) -> None:
    packs = pack(tmp_path, ports, insecure_loopback=True)
    (tmp_path / "hold-1").touch()
    with (
        counting(tmp_path, ports[0]) as one,
        counting(tmp_path, ports[1]) as two,
        serving(tmp_path / "data", packs=packs) as server,
        Client(Address.of(server.address)) as client,
    ):
        task = client.submit("relay the words please")
        victim = running_host(tmp_path, (one, two))
        victim.kill()
        done, events = finished(client, task)
        assert task_status_name(done.status) == "succeeded"
        assert done.result.answer_markdown == "There are 4 words. [Source: S1]"
        (failed,) = failures(events)
        assert failed.error.code == "AGENT_UNREACHABLE"
        assert failed.error.agent == "relay_count"
        assert victim.address in "".join(failed.error.evidence)
        other = two if victim is one else one
        assert (tmp_path / f"running-{other.pid}").exists()


def test_when_the_only_host_dies_the_stand_in_takes_over_and_the_host_heals(
    tmp_path: Path, ports: list[int]
) -> None:
    packs = pack(tmp_path, ports[:1], insecure_loopback=True, fallback="relay_count_here")
    with (
        serving(tmp_path / "data", packs=packs) as server,
        Client(Address.of(server.address)) as client,
    ):
        done, events = finished(client, client.submit("relay the words please"))
        assert task_status_name(done.status) == "succeeded"
        assert {failed.error.code for failed in failures(events)} == {"AGENT_UNREACHABLE"}
        assert "relay_count_here" in agents_that_ran(events)
        with counting(tmp_path, ports[0]) as host:
            ends = time.monotonic() + 20
            while time.monotonic() < ends:
                done, events = finished(client, client.submit("relay the words please"))
                assert task_status_name(done.status) == "succeeded"
                if not failures(events):
                    break
            assert "relay_count_here" not in agents_that_ran(events)
            assert (tmp_path / f"running-{host.pid}").exists()


def enrolled_host(server: Running, folder: Path, name: str, *hosts: str) -> Path:
    text = token(server, name, kind=AGENT_HOST, host_names=hosts)
    enroll(server.address, text, folder, kind="agent_host", clock=now)
    return folder


@contextmanager
def secured(server: Running) -> Iterator[Client]:
    with Client(server.tls_address()) as client:
        yield client


def test_over_tls_a_host_is_called_until_its_certificate_is_taken_back(tmp_path: Path, ports: list[int]) -> None:
    packs = pack(tmp_path, ports[:1], fallback="relay_count_here")
    with tls_serving(tmp_path / "data", packs=packs) as server, secured(server) as client:
        identity = enrolled_host(server, tmp_path / "identity", "gpu-1", "127.0.0.1")
        with counting(tmp_path, ports[0], "--identity", str(identity)) as host:
            done, events = finished(client, client.submit("relay the words please"))
            assert task_status_name(done.status) == "succeeded"
            assert not failures(events)
            (tmp_path / f"running-{host.pid}").unlink()
            for attempt in (1, 2, 3):
                (tmp_path / f"hold-{attempt}").touch()
            task = client.submit("relay the words please")
            running_host(tmp_path, [host])
            with operator(server) as machines:
                assert machines.revoke(AGENT_HOST, "gpu-1", reason="lost").ended_calls == 1
            done, events = finished(client, task)
            assert task_status_name(done.status) == "succeeded"
            first, *later = failures(events)
            assert first.error.code == "AGENT_UNREACHABLE"
            assert "taken back" in first.error.message
            assert all("not vouched for" in failed.error.message for failed in later)
            assert all("podium machine list" in failed.error.next_step for failed in later)
            assert "relay_count_here" in agents_that_ran(events)


def wait_for_failure(client: Client, words: str) -> None:
    """Submit until a step fails on the host in these words; the stand-in must do the step every time."""
    seen: set[str] = set()
    ends = time.monotonic() + 15
    while time.monotonic() < ends:
        done, events = finished(client, client.submit("relay the words please"))
        assert task_status_name(done.status) == "succeeded"
        assert "relay_count_here" in agents_that_ran(events)
        errors = [failed.error for failed in failures(events)]
        assert {error.code for error in errors} == {"AGENT_UNREACHABLE"}
        seen |= {error.message for error in errors}
        if any(words in message for message in seen):
            return
    raise AssertionError(f"no failure says {words!r}: {seen}")


def test_who_is_no_host_of_this_server_is_not_called(tmp_path: Path, ports: list[int]) -> None:
    packs = pack(tmp_path, ports[:1], fallback="relay_count_here")
    other_packs = tmp_path / "other"
    other_packs.mkdir()
    with tls_serving(tmp_path / "data", packs=packs) as server, secured(server) as client:
        with tls_serving(other_packs / "data") as other:
            foreign = enrolled_host(other, tmp_path / "foreign", "gpu-1", "127.0.0.1")
        # Of another authority; under other names; in clear.
        with counting(tmp_path, ports[0], "--identity", str(foreign)):
            wait_for_failure(client, "not vouched for")
        misnamed = enrolled_host(server, tmp_path / "misnamed", "gpu-2", "gpu-2.example")
        with counting(tmp_path, ports[0], "--identity", str(misnamed)):
            wait_for_failure(client, "for other names")
        with counting(tmp_path, ports[0]):
            wait_for_failure(client, "does not speak TLS")
        # None of these hosts was ever asked to run anything.
        assert not [*tmp_path.glob("running-*")]


def described(address: Address) -> list[str]:
    """The agents of a host."""
    with sync_channel(address) as channel:
        request = agent_pb2.DescribeRequest()
        response = agent_pb2_grpc.AgentServiceStub(channel).Describe(request, timeout=10)
        return [agent.name for agent in response.agents]


def shown_by(host: HostProcess, as_machine: Path) -> bytes:
    """The certificate that a host shows, DER."""
    asking = ssl.create_default_context(cafile=str(as_machine / "ca.pem"))
    asking.load_cert_chain(as_machine / "certificate.pem", as_machine / "key.pem")
    name, _, port = host.address.rpartition(":")
    with (
        socket.create_connection((name, int(port)), timeout=10) as plain,
        asking.wrap_socket(plain, server_hostname=name) as secured_socket,
    ):
        certificate = secured_socket.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def test_a_host_lets_in_only_those_who_run_steps_and_shows_its_newest_certificate(
    tmp_path: Path, ports: list[int]
) -> None:
    pack(tmp_path, ports[:1])
    with tls_serving(tmp_path / "data") as server:
        identity = enrolled_host(server, tmp_path / "identity", "gpu-1", "127.0.0.1")
        device, worker = tmp_path / "device", tmp_path / "worker"
        enroll(server.address, token(server, "pi-1"), device, kind="device", clock=now)
        invitation = token(server, "w-1", kind=identity_pb2.IDENTITY_KIND_WORKER)
        enroll(server.address, invitation, worker, kind="worker", clock=now)
        with counting(tmp_path, ports[0], "--identity", str(identity)) as host:
            assert described(Address.of_machine(MachineIdentity.load(worker), host.address)) == ["relay_count"]
            for refused, code in (
                (
                    Address.of_machine(MachineIdentity.load(device), host.address),
                    grpc.StatusCode.PERMISSION_DENIED,
                ),
                (
                    Address.of_machine(MachineIdentity.load(identity), host.address),
                    grpc.StatusCode.PERMISSION_DENIED,
                ),
                (
                    Address.of_authority(host.address, MachineIdentity.load(worker).ca_pem),
                    grpc.StatusCode.UNAVAILABLE,
                ),
            ):
                with pytest.raises(grpc.RpcError) as caught:
                    described(refused)
                assert isinstance(caught.value, grpc.Call)
                assert caught.value.code() is code
            before = shown_by(host, worker)
            renew(identity, clock=now)
            assert shown_by(host, worker) != before

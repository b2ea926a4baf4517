"""Tokens and keys are in no log, error, event, ledger or answer, whether calls succeed or fail."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from podium.client import Client
from podium.identity.enrolling import enroll
from podium.link import Address, MachineIdentity, sync_channel
from podium.v1 import identity_pb2, identity_pb2_grpc, task_pb2, task_pb2_grpc
from tests.integration.command_line import podium
from tests.integration.server import ServerProcess

RELAY = "relay the words please"
PLANTED = "planted-bearer-0123456789-planted"
_HOLD_SECRETS = {"operator.token", "tokens.key"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(
        tmp_path / "data", arguments=["--listen", "127.0.0.1:0"], environment={"PODIUM_LOG_LEVEL": "debug"}
    ).start()
    try:
        yield process
    finally:
        process.kill()


def _parts_of_keys(folder: Path) -> Iterator[str]:
    """Lines of every private key below a folder: any of them would be too much."""
    for path in folder.rglob("*"):
        if path.is_file() and b"PRIVATE KEY" in (content := path.read_bytes()):
            yield from (
                line for line in content.decode("ascii").splitlines() if re.fullmatch(r"[\w+/=]{40,}", line)
            )


def test_no_secret_is_told_anywhere(server: ServerProcess, tmp_path: Path) -> None:
    said: list[str] = []

    def run(*arguments: str, token: str = "", expect: int = 0) -> str:
        ran = podium(*arguments, "--json", environment={"PODIUM_TOKEN": token})
        assert ran.status == expect, ran.err
        said.extend([ran.out, ran.err])
        return ran.out

    reach = [
        "--server",
        server.target,
        "--ca",
        str(server.data / "tls" / "ca.pem"),
        "--data",
        str(tmp_path / "no"),
    ]
    operator = ["--token-file", str(server.data / "operator.token")]
    ann_file = tmp_path / "ann.token"
    run("token", "issue", "--subject", "ann", "--role", "caller", "--output", str(ann_file), *reach, *operator)
    ann = ann_file.read_text().strip()
    assert ann_file.stat().st_mode & 0o777 == 0o600

    # What succeeds, and what fails in every way there is.
    task_id = json.loads(run("submit", RELAY, *reach, token=ann))["task_id"]
    run("task", "get", task_id, *reach, token=ann)
    run("review", "list", *reach, token=ann, expect=1)
    run("token", "issue", "--subject", "eve", "--role", "administrator", *reach, token=ann, expect=1)
    for bad in (PLANTED, ann[:-8], f"{ann}{PLANTED}", f"{PLANTED} with a blank"):
        run("task", "list", *reach, token=bad, expect=1)
    planted_file = tmp_path / "planted"
    planted_file.write_bytes(PLANTED.encode() + b"\xff\xfe")
    run("task", "list", *reach, "--token-file", str(planted_file), expect=1)
    with sync_channel(Address.of(server.target, server.data / "tls" / "ca.pem")) as channel:
        for value in (f"Bearer {PLANTED}", f"Basic {PLANTED}", PLANTED):
            with pytest.raises(grpc.RpcError) as caught:
                task_pb2_grpc.TaskServiceStub(channel).ListTasks(
                    task_pb2.ListTasksRequest(), metadata=[("authorization", value)], timeout=10
                )
            said.append(f"{caught.value}{caught.value.trailing_metadata()}")
    machine, enrolment = _enrolled(server, tmp_path)
    run("token", "revoke", "--subject", "ann", "--reason", "left", *reach, *operator)
    run("task", "get", task_id, *reach, token=ann, expect=1)

    address = Address.of_machine(machine)
    with Client(server.address) as client:
        said += [repr(server.address), repr(address), repr(machine), repr(client), repr(vars(client)["_address"])]
    own = (server.data / "operator.token").read_text().strip()
    keys = [*_parts_of_keys(server.data), *_parts_of_keys(machine.folder)]
    assert len(keys) >= 6  # the tokens', the authority's, the server's and the machine's
    secrets = [ann, own, PLANTED, enrolment, *keys]
    # A signature alone, or all but it, would do as well.
    secrets += [part for token in (ann, own) for part in (token.rpartition(".")[0], token.rpartition(".")[2])]
    assert server.stop() == 0
    places = {"the log": server.log(), "what was said": "\n".join(said)}
    places |= {
        str(path): path.read_bytes().decode("latin-1")
        for path in server.data.rglob("*")
        if path.is_file() and path.name not in _HOLD_SECRETS and "PRIVATE KEY" not in path.read_text("latin-1")
    }
    assert any("events.sqlite" in place for place in places)
    assert "UNAUTHENTICATED" in places["the log"]
    assert '"level": "debug"' in places["the log"]
    for where, text in places.items():
        for secret in secrets:
            assert secret not in text, f"{secret[:12]}... is in {where}"


def _enrolled(server: ServerProcess, folder: Path) -> tuple[MachineIdentity, str]:
    with sync_channel(server.address) as channel:
        request = identity_pb2.CreateEnrolmentTokenRequest(kind=identity_pb2.IDENTITY_KIND_DEVICE, name="pi")
        token = identity_pb2_grpc.IdentityServiceStub(channel).CreateEnrolmentToken(request, timeout=10).token
    enroll(server.target, token, folder / "pi", kind="device", name="pi", clock=lambda: datetime.now(UTC))
    return MachineIdentity.load(folder / "pi"), token

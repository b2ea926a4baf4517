"""Clients that share no code with Podium: one from the protos alone, one from server reflection alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server import ROOT, Running, serving

AS_OF = "2026-10-15T09:00:00Z"

FROM_PROTOS = """
import json, sys, uuid
sys.path.insert(0, sys.argv[2])
import grpc
from podium.v1 import task_pb2, task_pb2_grpc, status_pb2

assert task_pb2.__file__.startswith(sys.argv[2]), task_pb2.__file__
with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = task_pb2_grpc.TaskServiceStub(channel)
    request = task_pb2.SubmitTaskRequest(request_id=str(uuid.uuid4()), text=sys.argv[3])
    request.as_of.FromJsonString(sys.argv[4])
    task_id = stub.SubmitTask(request, timeout=20).task.task_id
    for response in stub.WatchTask(task_pb2.WatchTaskRequest(task_id=task_id), timeout=120):
        print(response.event.header.sequence, response.event.WhichOneof("payload"))
    task = stub.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=20).task
    assert task.status == status_pb2.TASK_STATUS_SUCCEEDED
    print(json.dumps({"answer": task.result.answer_markdown, "fields": json.loads(task.result.fields_json)}))
"""

FROM_REFLECTION = """
import json, sys, uuid
import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

with grpc.insecure_channel(sys.argv[1]) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert "podium.v1.TaskService" in database.get_services()
    pool = DescriptorPool(database)
    service = pool.FindServiceByName("podium.v1.TaskService")

    def call(name, streamed=False, **fields):
        method = service.methods_by_name[name]
        make = channel.unary_stream if streamed else channel.unary_unary
        request = GetMessageClass(method.input_type)(**fields)
        return make(
            f"/{service.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )(request, timeout=120)

    as_of = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.Timestamp"))()
    as_of.FromJsonString(sys.argv[4])
    task = call("SubmitTask", request_id=str(uuid.uuid4()), text=sys.argv[3], as_of=as_of).task
    for response in call("WatchTask", streamed=True, task_id=task.task_id):
        print(response.event.header.sequence, response.event.WhichOneof("payload"))
    task = call("GetTask", task_id=task.task_id).task
    status = task.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number[task.status].name
    assert status == "TASK_STATUS_SUCCEEDED", status
    print(json.dumps({"answer": task.result.answer_markdown, "fields": json.loads(task.result.fields_json)}))

ours = [name for name in sys.modules if name.split(".")[0] in ("podium", "cloud", "conductor", "agents", "tools")]
assert not ours, ours
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the packs that ship, as its users have it."""
    with serving(tmp_path_factory.mktemp("everything"), packs=ROOT / "agents" / "packs") as running:
        yield running


def run_client(client: str, address: str, folder: Path, text: str) -> tuple[list[str], dict[str, Any]]:
    """Submit, watch and read with a client in a process of its own; the events it saw, and the result."""
    if client == "protos":
        protos = sorted((ROOT / "protos" / "podium" / "v1").glob("*.proto"))
        outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
        compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'protos'}"]
        subprocess.run([*compiler, *outputs, *map(str, protos)], check=True, cwd=folder)
        for package in ("podium", "podium/v1"):  # else the installed package of this name would win
            (folder / package / "__init__.py").touch()
    script = folder / "client.py"
    script.write_text(FROM_PROTOS if client == "protos" else FROM_REFLECTION)
    # Isolated (-I): neither the checkout nor PYTHONPATH is on the path; installed third-party packages are.
    done = subprocess.run(
        [sys.executable, "-I", str(script), address, str(folder), text, AS_OF],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *events, result = done.stdout.splitlines()
    return events, json.loads(result)


@pytest.mark.parametrize("client", ["protos", "reflection"])
def test_a_client_without_project_code_submits_watches_and_reads(
    server: Running, tmp_path: Path, client: str
) -> None:
    events, result = run_client(client, server.address, tmp_path, "relay the words please")
    assert events[0] == "1 task_accepted"
    assert events[-1].endswith("task_succeeded")
    assert result["answer"] == "There are 4 words. [Source: S1]"


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("protos", "对比华东和华南区域上季度销售额，找出下降超15%的城市"),
        (
            "reflection",
            "Compare last quarter's sales of East China and South China; find cities that fell by more than 15%",
        ),
    ],
)
def test_a_client_without_project_code_has_the_sales_question_answered(
    everything: Running, tmp_path: Path, client: str, text: str
) -> None:
    events, result = run_client(client, everything.address, tmp_path, text)
    assert events[0] == "1 task_accepted"
    assert events[-1].endswith("task_succeeded")
    assert sum(event.endswith("step_succeeded") for event in events) == 9
    assert "[Source: S1]" in result["answer"]
    # What the sample data holds; tests of their own compare it with SQL.
    assert sorted(row["city"] for row in result["fields"]["rows"]) == ["hefei", "jinan", "nanjing", "xiamen"]

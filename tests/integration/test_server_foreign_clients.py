"""Clients that share no code with Podium: one from the protos alone, one from server reflection alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.server import ROOT, Running

FROM_PROTOS = """
import sys, uuid
sys.path.insert(0, sys.argv[2])
import grpc
from podium.v1 import task_pb2, task_pb2_grpc, status_pb2

assert task_pb2.__file__.startswith(sys.argv[2]), task_pb2.__file__
with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = task_pb2_grpc.TaskServiceStub(channel)
    request = task_pb2.SubmitTaskRequest(request_id=str(uuid.uuid4()), text="relay the words please")
    task_id = stub.SubmitTask(request, timeout=20).task.task_id
    for response in stub.WatchTask(task_pb2.WatchTaskRequest(task_id=task_id), timeout=60):
        print(response.event.header.sequence, response.event.WhichOneof("payload"))
    task = stub.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=20).task
    assert task.status == status_pb2.TASK_STATUS_SUCCEEDED
    print(task.result.answer_markdown)
"""

FROM_REFLECTION = """
import sys, uuid
import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

with grpc.insecure_channel(sys.argv[1]) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert "podium.v1.TaskService" in database.get_services()
    service = DescriptorPool(database).FindServiceByName("podium.v1.TaskService")

    def call(name, streamed=False, **fields):
        method = service.methods_by_name[name]
        make = channel.unary_stream if streamed else channel.unary_unary
        request = GetMessageClass(method.input_type)(**fields)
        return make(
            f"/{service.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )(request, timeout=60)

    task = call("SubmitTask", request_id=str(uuid.uuid4()), text="relay the words please").task
    for response in call("WatchTask", streamed=True, task_id=task.task_id):
        print(response.event.header.sequence, response.event.WhichOneof("payload"))
    task = call("GetTask", task_id=task.task_id).task
    status = task.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number[task.status].name
    assert status == "TASK_STATUS_SUCCEEDED", status
    print(task.result.answer_markdown)

ours = [name for name in sys.modules if name.split(".")[0] in ("podium", "cloud", "conductor", "agents", "tools")]
assert not ours, ours
"""


@pytest.mark.parametrize("client", ["protos", "reflection"])
def test_a_client_without_project_code_submits_watches_and_reads(
    server: Running, tmp_path: Path, client: str
) -> None:
    if client == "protos":
        protos = sorted((ROOT / "protos" / "podium" / "v1").glob("*.proto"))
        outputs = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}"]
        compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'protos'}"]
        subprocess.run([*compiler, *outputs, *map(str, protos)], check=True, cwd=tmp_path)
        for folder in ("podium", "podium/v1"):  # else the installed package of this name would win
            (tmp_path / folder / "__init__.py").touch()
    script = tmp_path / "client.py"
    script.write_text(FROM_PROTOS if client == "protos" else FROM_REFLECTION)
    # Isolated (-I): neither the checkout nor PYTHONPATH is on the path; installed third-party packages are.
    done = subprocess.run(
        [sys.executable, "-I", str(script), server.address, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "1 task_accepted"
    assert lines[-2].endswith("task_succeeded")
    assert lines[-1] == "There are 4 words. [Source: S1]"

"""`podium edge run`: the device as a command."""

import asyncio
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from click.core import ParameterSource

from edge.identity import DeviceIdentity, enrolled, held
from edge.watching import FolderSource, shown_name
from podium.cli import emit, require
from podium.errors import InvalidRequest
from podium.link import Address
from podium.link.tokens import given_token
from podium.status import task_status_name
from podium.telemetry.redaction import redacted
from podium.v1 import status_pb2, task_pb2

# The pipeline is imported when it runs: `--help` needs neither OpenCV nor the ONNX runtime.
require("onnxruntime", "rapidocr")

ONCE_ATTEMPTS = 5
DEFAULT_SERVER = "127.0.0.1:7443"

FIELDS = {
    name: place
    for place, name in enumerate(("number", "date", "due_date", "supplier", "currency", "total", "tax", "lines"))
}
"""The fields of an answer in the order of an invoice."""

app = typer.Typer(
    name="edge", help="The device: read scanned documents here, ask the cloud about them.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Keep `run` a sub-command."""


@app.command()
def run(
    once: Annotated[
        Path | None, typer.Option("--once", help="Read one file, wait for the answer, print it, exit.")
    ] = None,
    watch: Annotated[
        Path | None, typer.Option("--watch", help="Read every new PNG, JPEG or PDF of this folder.")
    ] = None,
    identity: Annotated[
        Path | None,
        typer.Option(
            envvar="PODIUM_IDENTITY",
            help="Folder of the enrolled device's files (`podium enroll`); they say where the cloud is.",
        ),
    ] = None,
    server: Annotated[
        str,
        typer.Option(
            envvar="PODIUM_SERVER",
            help="The cloud, HOST:PORT. With --identity only to reach its port for machines elsewhere.",
        ),
    ] = DEFAULT_SERVER,
    ca: Annotated[
        Path | None,
        typer.Option(
            envvar="PODIUM_CA",
            help="The cloud's certificate authority (ca.pem). Without it, only loopback is spoken to, in clear.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            envvar="PODIUM_TOKEN_FILE",
            help="An administrator's token, to try a device that is not enrolled; or PODIUM_TOKEN.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(envvar="PODIUM_DEVICE", help="The device's name: its certificate's, or the machine's."),
    ] = "",
    threads: Annotated[int, typer.Option(min=1, max=16, help="Threads of one model run.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object an answer on stdout.")] = False,
) -> None:
    """Read scanned invoices on this machine and ask the cloud to check them; the pictures stay here.

    With --once, prints {"task_id", "status", "fields", "findings", "needs_review"} and exits 0 only when the task
    succeeded. With --watch, runs until it is stopped and prints one such object for each document.
    """
    if (once is None) == (watch is None):
        raise InvalidRequest("give either --once FILE or --watch FOLDER", field="once")
    if once is not None and not once.is_file():
        raise InvalidRequest(f"there is no file {once}", field="once")
    if watch is not None and not watch.is_dir():
        raise InvalidRequest(f"{watch} is not a folder", field="watch")
    with ExitStack() as exits:
        if identity is not None:
            who = _enrolled(identity, device=device, server=server)
            exits.enter_context(held(identity))
        else:
            from edge.device import default_device_id

            address = Address.of(server, ca, token=given_token(token_file, os.environ))
            name = device or default_device_id(once=once is not None)
            who = DeviceIdentity(name=name, address=lambda: address)
        if watch is not None:
            asyncio.run(_watch(who, watch, threads, as_json=as_json))
        elif once is not None:
            answer = asyncio.run(_once(who, once, threads))
            _show(answer, as_json=as_json)
            raise SystemExit(0 if answer["status"] == "succeeded" else 1)


def _enrolled(folder: Path, *, device: str, server: str) -> DeviceIdentity:
    def typed(option: str) -> bool:
        return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE

    for option in ("ca", "token_file"):
        if typed(option):
            name = option.replace("_", "-")
            raise InvalidRequest(
                f"--{name} has no use with --identity, whose files hold what is needed", field=name
            )
    # PODIUM_SERVER in the environment is the port that people use, and machines have another.
    return enrolled(folder, name=device, target=server if typed("server") else "", on_problem=_say)


async def _once(who: DeviceIdentity, path: Path, threads: int) -> dict[str, Any]:
    from edge.device import Device

    async with Device(who, threads=threads, attempts=ONCE_ATTEMPTS, on_state=_OnChange(_say)) as device:
        _say(f"reading {shown_name(path)}")
        seen = await device.read(path, observation_id=str(uuid.uuid4()))
        pages = seen.scan.reading.pages
        _say(f"read {len(pages)} {'page' if len(pages) == 1 else 'pages'}, asking the cloud to check them")
        task_id = await device.send(seen)
        _say(f"waiting for task {task_id}")
        return answer_of(await device.wait(task_id))


async def _watch(who: DeviceIdentity, folder: Path, threads: int, *, as_json: bool) -> None:
    from edge.device import Device
    from edge.folder_run import FolderRun

    def show(name: str, task: task_pb2.Task) -> None:
        _show(answer_of(task) | {"file": name}, as_json=as_json)

    try:
        source = FolderSource(folder)
    except OSError as error:
        raise InvalidRequest(f"{folder} cannot be watched: {error}", field="watch") from error
    _say(f"{who.name} watches {folder}; stop it with Ctrl-C")
    async with Device(who, threads=threads, folder=folder, on_state=_OnChange(_say)) as device:
        await _until_stopped(FolderRun(device, source, show=show, say=_say, clock_s=time.time).run())


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Do `work` until the process is told to stop: by a service manager (SIGTERM) or by Ctrl-C."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        _say("stopped")


class _OnChange:
    """Passes a state on when it differs from the last: a server that is away for a day is one line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last = ""

    def __call__(self, state: str) -> None:
        if state != self._last:
            self._say(state)
        self._last = state


def answer_of(task: task_pb2.Task) -> dict[str, Any]:
    """The object that is printed for one document."""
    answer: dict[str, Any] = {
        "task_id": task.task_id,
        "status": task_status_name(task.status),
        "fields": {},
        "findings": [],
        "needs_review": [],
    }
    if task.status == status_pb2.TASK_STATUS_SUCCEEDED:
        fields = json.loads(task.result.fields_json)
        answer.update({key: fields[key] for key in ("fields", "findings", "needs_review") if key in fields})
    elif task.HasField("error"):
        answer["error"] = {
            "code": task.error.code,
            "message": task.error.message,
            "next_step": task.error.next_step,
        }
    elif task.status == status_pb2.TASK_STATUS_WAITING_INPUT:
        answer["question"] = task.question.text
    return answer


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        emit(answer)
        return
    lines = [f"{answer.get('file', '')} {answer['status']} (task {answer['task_id']})".strip()]
    names = sorted(answer["fields"], key=lambda name: FIELDS.get(name, len(FIELDS)))
    lines += [_field_line(name, answer["fields"][name]) for name in names]
    lines += [f"  ! {finding['code']}: {finding['message']}" for finding in answer["findings"]]
    lines += [f"  ? {item['field']} needs review: {item['reason']}" for item in answer["needs_review"]]
    if "error" in answer:
        lines.append(f"  {answer['error']['code']}: {answer['error']['message']} {answer['error']['next_step']}")
    if "question" in answer:
        lines.append(f"  it asks: {answer['question']}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _field_line(name: str, field: dict[str, Any]) -> str:
    if name == "lines":
        value = f"{len(field['value'] or [])} rows"
    elif field["value"] is None:
        return f"  {name:<10} not found"
    else:
        value = field["value"]
    return f"  {name:<10} {value}  (confidence {field['confidence']:.2f})"


def _say(text: str) -> None:
    sys.stderr.write(f"edge: {redacted(text)}\n")
    sys.stderr.flush()

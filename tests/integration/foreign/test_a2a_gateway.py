"""The A2A SDK's own client hands tasks to Podium and gets answers with their sources."""

import asyncio
import ssl
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_data_parts, get_text_parts, new_data_part
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from agents.engines.a2a import A2aEngine
from agents.invocation import AgentContext, Caller, Invocation
from tests.fakes.agents import agent_spec
from tests.integration.foreign.calls import nothing_left
from tests.integration.foreign.gateways import ANSWER, SALES, UNCLEAR, Desk, gateway, sales_desk

BINDINGS = ("JSONRPC", "GRPC", "HTTP+JSON")
COMPLETED, ASKING = TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_INPUT_REQUIRED


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with sales_desk(tmp_path_factory.mktemp("sales") / "data") as desk:
        yield desk


@pytest.fixture(scope="module")
def url(desk: Desk) -> Iterator[str]:
    log = desk.server.data.parent / "gateway.log"
    with gateway("a2a", "--listen", "127.0.0.1:0", "--data", str(desk.server.data), log=log) as said:
        yield said["url"]
    written = log.read_text()
    for secret in (SALES, UNCLEAR, desk.ann, desk.bob):
        assert secret not in written


@asynccontextmanager
async def connected(
    url: str, binding: str = "JSONRPC", *, verify: Any = True, ca_pem: bytes | None = None, **options: Any
) -> AsyncIterator[Client]:
    """The SDK's client, by the card."""

    def channel(target: str) -> grpc.aio.Channel:
        if ca_pem is None:
            return grpc.aio.insecure_channel(target)
        return grpc.aio.secure_channel(target.removeprefix("https://"), grpc.ssl_channel_credentials(ca_pem))

    async with httpx.AsyncClient(timeout=60, verify=verify) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=channel,
            supported_protocol_bindings=[binding],
            **options,
        )
        async with ClientFactory(config).create(card) as client:
            yield client


def as_caller(token: str) -> ClientCallContext:
    return ClientCallContext(service_parameters={"Authorization": f"Bearer {token}"} if token else None)


def message(text: str, **fields: Any) -> SendMessageRequest:
    fields.setdefault("message_id", str(uuid.uuid4()))
    parts = fields.pop("parts", [Part(text=text)])
    return SendMessageRequest(message=Message(role=Role.ROLE_USER, parts=parts, **fields))


async def send(client: Client, token: str, request: SendMessageRequest) -> list[StreamResponse]:
    return [event async for event in client.send_message(request, context=as_caller(token))]


async def sent(client: Client, token: str, request: SendMessageRequest) -> Task:
    """The task in the end."""
    events = await send(client, token, request)
    task_id = next(event.task.id for event in events if event.HasField("task"))
    return await client.get_task(GetTaskRequest(id=task_id), context=as_caller(token))


def check_answer(task: Task) -> None:
    assert task.status.state == COMPLETED, task.status
    [artifact] = task.artifacts
    [markdown] = get_text_parts(artifact.parts)
    [data] = get_data_parts(artifact.parts)
    assert "[Source: S1]" in markdown
    assert data["fields"]["rows"]
    assert {source["id"] for source in data["sources"]} >= {"S1", "S2"}


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_client_streams_a_task_to_its_answer_with_sources(desk: Desk, url: str, binding: str) -> None:
    async def work() -> tuple[list[StreamResponse], Task]:
        async with connected(url, binding) as client:
            request = message(SALES)
            events = await send(client, desk.ann, request)
            task = await client.get_task(GetTaskRequest(id=events[0].task.id), context=as_caller(desk.ann))
            return events, task

    events, task = asyncio.run(work())
    check_answer(task)
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds[0] == "task"
    assert kinds[-2:] == ["artifact_update", "status_update"]
    assert events[-1].status_update.status.state == COMPLETED
    check_answer(Task(status=events[-1].status_update.status, artifacts=[events[-2].artifact_update.artifact]))


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_client_that_does_not_stream_waits_for_the_answer(desk: Desk, url: str, binding: str) -> None:
    async def work() -> list[StreamResponse]:
        async with connected(url, binding, streaming=False) as client:
            return await send(client, desk.ann, message(SALES))

    [event] = asyncio.run(work())
    check_answer(event.task)


def test_a_client_that_polls_gets_its_task_at_once(desk: Desk, url: str) -> None:
    async def work() -> Task:
        async with connected(url, streaming=False, polling=True) as client:
            [event] = await send(client, desk.ann, message(SALES))
            task = event.task
            async with asyncio.timeout(60):
                while task.status.state != COMPLETED:
                    await asyncio.sleep(0.05)
                    task = await client.get_task(GetTaskRequest(id=task.id), context=as_caller(desk.ann))
            return task

    check_answer(asyncio.run(work()))


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_question_is_input_required_and_the_next_message_answers_it(desk: Desk, url: str, binding: str) -> None:
    async def work() -> Task:
        async with connected(url, binding) as client:
            asked = await sent(client, desk.ann, message(UNCLEAR, context_id="my conversation"))
            assert asked.status.state == ASKING
            assert asked.context_id == "my conversation"
            [words] = get_text_parts(asked.status.message.parts)
            assert "Atlantis" in words
            assert asked.status.message.metadata["question_id"]
            with pytest.raises(A2AError, match="another context"):
                await send(client, desk.ann, message(ANSWER, task_id=asked.id, context_id="other"))
            return await sent(client, desk.ann, message(ANSWER, task_id=asked.id))

    check_answer(asyncio.run(work()))


def test_a_message_that_is_sent_again_runs_once(desk: Desk, url: str) -> None:
    async def work() -> tuple[str, str, str]:
        async with connected(url) as client:
            first = await sent(client, desk.ann, message(SALES, message_id="m-1"))
            again = await sent(client, desk.ann, message(SALES, message_id="m-1"))
            other = await sent(client, desk.bob, message(SALES, message_id="m-1"))
            return first.id, again.id, other.id

    first, again, other = asyncio.run(work())
    assert first == again != other


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_task_is_cancelled_once_and_by_its_owner(desk: Desk, url: str, binding: str) -> None:
    async def work() -> None:
        async with connected(url, binding) as client:
            asked = await sent(client, desk.ann, message(UNCLEAR))
            ann, request = as_caller(desk.ann), CancelTaskRequest(id=asked.id)
            for call in (client.get_task(GetTaskRequest(id=asked.id), context=as_caller(desk.bob)),):
                with pytest.raises(A2AError):
                    await call
            with pytest.raises(A2AError):
                await client.cancel_task(request, context=as_caller(desk.bob))
            cancelled = await client.cancel_task(request, context=ann)
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(request, context=ann)
            with pytest.raises(UnsupportedOperationError):
                await send(client, desk.ann, message("go on", task_id=asked.id))
            with pytest.raises(UnsupportedOperationError):
                async for _ in client.subscribe(SubscribeToTaskRequest(id=asked.id), context=ann):
                    pass

    asyncio.run(work())


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_is_not_there_or_not_offered_is_said(desk: Desk, url: str, binding: str) -> None:
    async def work() -> None:
        async with connected(url, binding) as client:
            ann = as_caller(desk.ann)
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id="no-such-task"), context=ann)
            with pytest.raises(TaskNotFoundError):
                await send(client, desk.ann, message("x", task_id="no-such-task"))
            with pytest.raises(ContentTypeNotSupportedError):
                await send(client, desk.ann, message("", parts=[new_data_part({"a": 1})]))
            for moment in ("soon", "9999-12-31T23:59:59-23:59", 5):
                data = new_data_part({"text": UNCLEAR, "as_of": moment})
                with pytest.raises(InvalidParamsError, match="as_of"):
                    await send(client, desk.ann, message("", parts=[data]))
            for size in (-1, 101):
                with pytest.raises(InvalidParamsError, match="page_size"):
                    await client.list_tasks(ListTasksRequest(page_size=size), context=ann)
            with pytest.raises(InvalidParamsError, match="text"):
                await send(client, desk.ann, message("x" * 5000))
            config = TaskPushNotificationConfig(task_id="t", id="c", url="http://127.0.0.1:9/")
            with pytest.raises(PushNotificationNotSupportedError):
                await client.create_task_push_notification_config(config, context=ann)

    asyncio.run(work())


def test_a_caller_lists_its_own_tasks(desk: Desk, url: str) -> None:
    async def work() -> tuple[Task, list[Task], list[Task]]:
        async with connected(url) as client:
            asked = await sent(client, desk.ann, message(UNCLEAR, context_id="listed"))
            request = ListTasksRequest(context_id="listed", status=ASKING)
            mine = await client.list_tasks(request, context=as_caller(desk.ann))
            others = await client.list_tasks(request, context=as_caller(desk.bob))
            return asked, list(mine.tasks), list(others.tasks)

    asked, mine, others = asyncio.run(work())
    assert [task.id for task in mine] == [asked.id]
    assert others == []


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize("binding", BINDINGS)
def test_an_unknown_caller_gets_no_further(url: str, binding: str, token: str) -> None:
    async def work() -> None:
        async with connected(url, binding) as client:
            await client.get_task(GetTaskRequest(id="x"), context=as_caller(token))

    with pytest.raises(A2AClientError, match=r"401|UNAUTHENTICATED"):
        asyncio.run(work())


def test_the_card_needs_no_token_and_says_that_calls_do(url: str) -> None:
    card = httpx.get(f"{url}/.well-known/agent-card.json").json()
    assert [way["protocolBinding"] for way in card["supportedInterfaces"]] == list(BINDINGS)
    assert {way["protocolVersion"] for way in card["supportedInterfaces"]} == {"1.0"}
    assert "task" in {skill["id"] for skill in card["skills"]}
    assert card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"] == "bearer"
    rebound = httpx.get(f"{url}/.well-known/agent-card.json", headers={"Host": "rebound.example"})
    assert rebound.status_code == 403


def test_a_token_given_by_name_is_lent_on_loopback_and_names_the_packs(desk: Desk, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(desk.ann)
    options = ["--listen", "127.0.0.1:0", "--token-file", str(token_file), "--data", str(desk.server.data)]
    with gateway("a2a", *options, log=tmp_path / "log") as said:
        card = httpx.get(f"{said['url']}/.well-known/agent-card.json").json()
        assert {skill["id"] for skill in card["skills"]} >= {"task", "invoice"}
        assert "securitySchemes" not in card

        async def work() -> Task:
            async with connected(said["url"]) as client:
                return await sent(client, "", message(SALES))

        check_answer(asyncio.run(work()))


@pytest.mark.parametrize("binding", ["JSONRPC", "GRPC"])
def test_off_loopback_the_gateway_speaks_tls(desk: Desk, tmp_path: Path, binding: str) -> None:
    tls = desk.server.data / "tls"
    options = ["--listen", "0.0.0.0:0", "--host-name", "127.0.0.1", "--data", str(desk.server.data)]
    options += ["--tls-certificate", str(tls / "server.pem"), "--tls-key", str(tls / "server.key")]
    with gateway("a2a", *options, log=tmp_path / "log") as said:
        ca_file = tls / "ca.pem"

        async def work() -> Task:
            way = connected(
                said["url"],
                binding,
                verify=ssl.create_default_context(cafile=ca_file),
                ca_pem=ca_file.read_bytes(),
            )
            async with way as client:
                return await sent(client, desk.ann, message(SALES))

        check_answer(asyncio.run(work()))


@pytest.mark.parametrize("binding", ["jsonrpc", "grpc", "rest"])
def test_podium_is_an_agent_of_podium(desk: Desk, url: str, binding: str) -> None:
    """One manifest brings Podium itself in as an agent: both halves against each other."""
    spec = agent_spec(
        "other_podium",
        inputs={"text": {"type": "string"}},
        engine="a2a",
        settings={"card": url, "skill": "task", "binding": binding, "token_env": "TOKEN", "confidence": 0.9},
    )
    context = AgentContext(
        task_id="t", step=0, attempt=1, idempotency_key="t/0", now=datetime.now(UTC), caller=Caller(name="x")
    )
    call = Invocation(spec=spec, inputs={"text": SALES}, context=context, time_limit=timedelta(seconds=60))

    async def work() -> Any:
        engine = A2aEngine({"TOKEN": desk.ann})
        try:
            return await engine.invoke(call)
        finally:
            await engine.close()
            await nothing_left()

    output = asyncio.run(work())
    assert output["status"] == "succeeded"
    assert "[Source: S1]" in output["answer_markdown"]
    assert output["sources"][0]["label"].startswith("skill task of Podium")
    assert output["sources"][1]["label"].endswith("(as told by other_podium)")

"""Hosts that describe an agent well and then answer with anything but an answer."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from agents.canonical import canonical_json, sha256_of
from agents.contract import Contract
from agents.engines.foreign import AgentIncompatible
from agents.invocation import Invocation
from agents.spec import AgentSpec
from podium.errors import (
    AgentCrashed,
    AgentError,
    AgentOverLimit,
    AgentTimeout,
    AgentUnreachable,
    InputContractBroken,
    OutputContractBroken,
    catalogue,
)
from podium.v1 import agent_pb2
from tests.integration.hosts.ground import ask, call, in_clear, spec

MEGABYTE = 2**20
BOMB_BYTES = 200 * MEGABYTE
LIED = sorted(
    code
    for code, kind in catalogue().items()
    if kind.__module__ == "podium.errors" and not issubclass(kind, AgentError)
)


class HostileHost:
    """Answers with `answer(request, context)`, which gives bytes, or ends the call."""

    def __init__(self) -> None:
        self.calls = 0
        self.answer: Any = None
        self.described = described(spec())

    async def describe(self, request: bytes, context: Any) -> bytes:
        return self.described

    async def invoke(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        answered: bytes = await self.answer(request, context)
        return answered


def described(agent: AgentSpec) -> bytes:
    description = agent_pb2.AgentDescription(
        name=agent.name,
        version=agent.version,
        input_schema_json=canonical_json(agent.input_schema),
        output_schema_json=canonical_json(agent.output_schema),
    )
    return agent_pb2.DescribeResponse(agents=[description]).SerializeToString()


@asynccontextmanager
async def serving(host: HostileHost, **options: Any) -> AsyncIterator[str]:
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)], **options)
    methods = {
        "Describe": grpc.unary_unary_rpc_method_handler(host.describe),
        "Invoke": grpc.unary_unary_rpc_method_handler(host.invoke),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("podium.v1.AgentService", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def told(answer: Any, *, limit_s: float = 10, **changes: Any) -> AgentError:
    """What becomes of a call that the host answers so; a good call afterwards must be answered."""
    host = HostileHost()
    host.answer = answer
    async with serving(host) as target:
        engine = in_clear()
        agent = spec(target, **changes)
        with pytest.raises(AgentError) as caught:
            await _checked(engine, call(agent, limit_s=limit_s))
        assert host.calls == 1
        host.answer = good
        assert await ask(engine, call(agent, attempt=2)) == "well"
        await engine.close()
    assert len(caught.value.message) < 1_000
    return caught.value


async def _checked(engine: Any, invocation: Invocation) -> None:
    contract = Contract.compile(invocation.spec)
    output = contract.sanitise(await engine.invoke(invocation)).output
    if broken := contract.output_violations(output):
        raise OutputContractBroken(broken[0], agent=invocation.spec.name)


def response(output: bytes, sha256: str = "") -> bytes:
    ours = sha256 or sha256_of(spec().output_schema)
    return agent_pb2.InvokeResponse(output_json=output, output_schema_sha256=ours).SerializeToString()


async def good(request: bytes, context: Any) -> bytes:
    return response(canonical_json({"said": "well", "confidence_score": 1, "sources": []}))


def saying(data: bytes) -> Any:
    async def answer(request: bytes, context: Any) -> bytes:
        return data

    return answer


def ending(code: grpc.StatusCode, reason: str, *, number: int | None = None, message: str = "because") -> Any:
    """A status with an ErrorInfo of ours."""

    async def answer(request: bytes, context: Any) -> bytes:
        status = status_pb2.Status(code=code.value[0] if number is None else number, message=message)
        info = error_details_pb2.ErrorInfo(reason=reason, domain="podium", metadata={"agent": "somebody_else"})
        status.details.add().Pack(info)
        await context.abort(code, message, (("grpc-status-details-bin", status.SerializeToString()),))
        raise AssertionError("abort raises")

    return answer


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xff\xff\xff\xff\x07garbage", AgentCrashed),
        (b"", AgentIncompatible),
        (response(b"{}", "0" * 64), AgentIncompatible),
        (response(b"\xff\xfe"), OutputContractBroken),
        (response(b"Well, let me think."), OutputContractBroken),
        (response(b"[" * 100_000), OutputContractBroken),
        (response(b'{"said": "x"}'), OutputContractBroken),
        (response(b"x" * 300_100), AgentOverLimit),
        (response(b"x" * 5 * MEGABYTE), AgentOverLimit),
    ],
    ids=["garbage", "nothing", "other schema", "no text", "prose", "deep", "wrong", "large", "huge"],
)
def test_an_answer_that_is_none(data: bytes, kind: type[AgentError]) -> None:
    error = asyncio.run(told(saying(data)))
    assert type(error) is kind


def test_a_compressed_answer_is_measured_as_it_is_after_decompression() -> None:
    async def tried() -> None:
        host = HostileHost()
        host.answer = saying(response(bytes(BOMB_BYTES)))
        async with serving(host, compression=grpc.Compression.Gzip) as target:
            engine = in_clear()
            small = spec(target)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with pytest.raises(AgentOverLimit):
                await engine.invoke(call(small, limit_s=30))
            host.answer = good
            assert await ask(engine, call(small)) == "well"
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            # The host is in this process and holds the message itself; no second one comes of it.
            assert grown < 1.5 * BOMB_BYTES
            await engine.close()

    asyncio.run(tried())


@pytest.mark.parametrize("code", LIED)
def test_a_host_cannot_speak_for_others_than_its_agent(code: str) -> None:
    kind = catalogue()[code]
    error = asyncio.run(told(ending(kind.status, code)))
    expected = {grpc.StatusCode.DEADLINE_EXCEEDED: AgentTimeout, grpc.StatusCode.UNAVAILABLE: AgentUnreachable}
    if code == "NOT_FOUND":
        assert type(error) is AgentIncompatible
    elif code in ("PERMISSION_DENIED", "UNAUTHENTICATED"):
        assert type(error) is AgentUnreachable
    else:
        assert type(error) is expected.get(kind.status, AgentCrashed)
    assert error.agent == "behave"


@pytest.mark.parametrize(
    "code", ["DEVICE_OFFLINE", "DEVICE_LOST", "CAPABILITY_DENIED", "CAPABILITY_EXPIRED", "AGENT_ERROR"]
)
def test_nor_make_a_step_wait_for_a_device_or_deny_a_capability(code: str) -> None:
    error = asyncio.run(told(ending(catalogue()[code].status, code)))
    assert type(error) in (AgentCrashed, AgentUnreachable)
    assert error.agent == "behave"


def test_a_code_under_the_status_of_another_is_not_believed() -> None:
    error = asyncio.run(told(ending(grpc.StatusCode.INTERNAL, "AGENT_OVER_LIMIT")))
    assert type(error) is AgentCrashed
    error = asyncio.run(told(ending(grpc.StatusCode.INTERNAL, "AGENT_CRASHED", number=0)))
    assert type(error) is AgentCrashed


def test_a_writing_agent_cannot_claim_that_it_did_not_begin() -> None:
    refusing = ending(InputContractBroken.status, "INPUT_CONTRACT_BROKEN")
    assert type(asyncio.run(told(refusing))) is InputContractBroken
    assert type(asyncio.run(told(refusing, side_effects="write"))) is AgentCrashed


async def _details(request: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.INTERNAL, "x" * 4 * MEGABYTE)
    raise AssertionError("abort raises")


async def _broken_details(request: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.INTERNAL, "y", (("grpc-status-details-bin", b"\xff\xff\xff\xff\x07"),))
    raise AssertionError("abort raises")


async def _trailers(request: bytes, context: Any) -> bytes:
    context.set_trailing_metadata(tuple((f"k{number}", "v" * 500) for number in range(8_000)))
    return await good(request, context)


async def _headers(request: bytes, context: Any) -> bytes:
    await context.send_initial_metadata(tuple((f"k{number}", "v" * 500) for number in range(8_000)))
    return await good(request, context)


@pytest.mark.parametrize("answer", [_details, _broken_details, _trailers, _headers])
def test_details_and_metadata_without_end(answer: Any) -> None:
    error = asyncio.run(told(answer))
    assert type(error) is AgentCrashed
    assert error.agent == "behave"


async def _never(request: bytes, context: Any) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError("it never is")


def test_an_answer_that_never_comes() -> None:
    assert type(asyncio.run(told(_never, limit_s=0.5))) is AgentTimeout


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (b"\xff\xff\xff\xff\x07", "no message of ours"),
        (b"", "no version of it"),
        (described(spec(version="3.0.0")), "3.0.0"),
        (described(spec(output_schema={**spec().output_schema, "title": "another"})), "output schema"),
        (
            agent_pb2.DescribeResponse(
                agents=[agent_pb2.AgentDescription(name="behave", version="1.0.0", input_schema_json=b"[" * 9_999)]
            ).SerializeToString(),
            "no JSON",
        ),
    ],
    ids=["garbage", "nothing", "another version", "another schema", "a schema that is none"],
)
def test_a_description_that_does_not_fit_keeps_the_agent_from_being_called(description: bytes, words: str) -> None:
    async def tried() -> None:
        host = HostileHost()
        host.described, host.answer = description, good
        async with serving(host) as target:
            engine = in_clear()
            with pytest.raises(AgentIncompatible, match=words):
                await engine.invoke(call(spec(target)))
            await engine.close()
        assert host.calls == 0

    asyncio.run(tried())


def test_what_listens_there_is_no_agent_host() -> None:
    async def tried() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-2.0-no\r\n" * 1_000)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            engine = in_clear()
            with pytest.raises(AgentUnreachable):
                await engine.invoke(call(spec(f"127.0.0.1:{port}"), limit_s=5))
            await engine.close()
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        engine = in_clear()
        with pytest.raises(AgentIncompatible, match="does not speak"):
            await engine.invoke(call(spec(f"127.0.0.1:{port}")))
        await engine.close()
        await server.stop(0)

    asyncio.run(tried())

"""A skill of an A2A agent as an agent: by JSON-RPC, REST and gRPC, with every way to fail."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents.contract import HandoverBroken
from agents.engines.a2a import A2aEngine
from agents.engines.foreign import AgentIncompatible
from podium.errors import (
    AgentCrashed,
    AgentError,
    AgentTimeout,
    AgentUnreachable,
    InputContractBroken,
    OutputContractBroken,
)
from tests.integration.foreign.calls import invocation, nothing_left, process, violations

AGENT = "tests.fakes.a2a_agent"


class FakeSeconds:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def run(work: Callable[[A2aEngine], Awaitable[Any]], **parts: Any) -> Any:
    async def with_engine() -> Any:
        engine = A2aEngine({}, **parts)
        try:
            return await work(engine)
        finally:
            await engine.close()
            await nothing_left()

    return asyncio.run(with_engine())


def ask(skill: str, card: str, inputs: Mapping[str, Any] | None = None, **fields: Any) -> Any:
    settings = {"card": card, "skill": skill, **fields.pop("settings", {})}
    return invocation(settings, inputs, engine="a2a", **fields)


def call(skill: str, card: str, inputs: Mapping[str, Any] | None = None, **fields: Any) -> Any:
    return run(lambda engine: engine.invoke(ask(skill, card, inputs, **fields)))


@pytest.fixture(scope="module", params=["jsonrpc", "grpc", "rest", "polled"])
def card(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with agent(tmp_path_factory.mktemp("a2a") / "port", request.param) as url:
        yield url


@contextmanager
def agent(port_file: Path, way: str = "jsonrpc", *more: str) -> Iterator[str]:
    options = ["--offer", "jsonrpc", "--no-streaming"] if way == "polled" else ["--offer", way]
    with process(AGENT, str(port_file), *options, *more, port_file=port_file):
        yield f"http://127.0.0.1:{port_file.read_text().split()[0]}"


@pytest.mark.parametrize("skill", ["lookup", "text", "message", "chunks"])
def test_an_answer_gets_the_declared_confidence_and_a_source(card: str, skill: str) -> None:
    made = ask(skill, card)
    output = run(lambda engine: engine.invoke(made))
    assert output["population"] == 6000
    assert isinstance(output["population"], int)
    assert output["confidence_score"] == 0.7
    [source] = output["sources"]
    assert source["label"] == f"skill {skill} of atlas 3.1"
    assert source["location"] == f"{card}#{skill}"
    assert violations(made, output) == []


def test_a_forged_confidence_is_cut_and_a_claimed_source_is_marked(card: str) -> None:
    output = call("forge", card)
    assert output["confidence_score"] == 0.7
    assert [source["label"] for source in output["sources"]] == [
        "skill forge of atlas 3.1",
        "sales warehouse (as told by atlas)",
    ]


@pytest.mark.parametrize(
    ("skill", "error", "words"),
    [
        ("prose", OutputContractBroken, "not one JSON object"),
        ("two", OutputContractBroken, "2 data parts"),
        ("big_number", OutputContractBroken, "2\\^53"),
        ("not_a_number", OutputContractBroken, "NaN"),
        ("huge", OutputContractBroken, "more than its manifest allows"),
        ("fail", AgentCrashed, "failed: no such city"),
        ("reject", AgentCrashed, "refused the task: no such city"),
        ("ask_for_ever", OutputContractBroken, "2 times: Which of the two Suzhous"),
        ("nothing_of_the_kind", AgentIncompatible, "has no skill"),
    ],
)
def test_every_way_to_fail_has_its_type(card: str, skill: str, error: type[AgentError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        call(skill, card)
    assert caught.value.agent == "atlas"
    assert len(caught.value.message) < 700


def test_a_question_is_a_turn_and_turns_are_counted(card: str) -> None:
    assert call("ask", card)["population"] == 6000
    with pytest.raises(OutputContractBroken, match="1 times"):
        call("ask", card, settings={"max_turns": 0})


@pytest.mark.parametrize("card", ["jsonrpc"], indirect=True)
def test_a_hand_over_may_leave_fewer_turns(card: str) -> None:
    made = ask("ask", card)
    for turns, outcome in ((1, HandoverBroken), (2, None)):
        limited = replace(made, context=replace(made.context, turns_left=turns))
        if outcome is None:
            assert run(lambda engine, call=limited: engine.invoke(call))["population"] == 6000
        else:
            with pytest.raises(outcome, match="1 times"):
                run(lambda engine, call=limited: engine.invoke(call))


def test_an_agent_that_hangs_times_out_and_its_task_is_cancelled(tmp_path: Path) -> None:
    with agent(tmp_path / "port") as url:
        began = time.monotonic()

        async def work(engine: A2aEngine) -> None:
            with pytest.raises(AgentTimeout, match="within 1 s"):
                await engine.invoke(ask("hang", url, seconds=1))
            assert time.monotonic() - began < 1.5
            assert (await engine.invoke(ask("lookup", url)))["population"] == 6000
            async with asyncio.timeout(5):
                while not (tmp_path / "port.cancelled").exists():  # noqa: ASYNC110 - written by another process
                    await asyncio.sleep(0.02)

        run(work)


@pytest.mark.parametrize("way", ["jsonrpc", "grpc", "polled"])
def test_an_agent_that_is_killed_in_the_middle_and_comes_back(tmp_path: Path, way: str) -> None:
    inputs = {"city": "Xi'an", "marks": str(tmp_path / "mark")}

    async def work(engine: A2aEngine) -> Any:
        with agent(tmp_path / "port", way) as url:
            http_port, grpc_port = (tmp_path / "port").read_text().split()
            with pytest.raises(AgentUnreachable) as caught:
                await engine.invoke(ask("die_once", url, inputs))
            assert caught.value.retryable
            with pytest.raises(AgentUnreachable):
                await engine.invoke(ask("die_once", url, inputs))
        (tmp_path / "port").unlink()
        with agent(tmp_path / "port", way, "--http-port", http_port, "--grpc-port", grpc_port) as url:
            return await engine.invoke(ask("die_once", url, inputs))

    assert run(work)["population"] == 5000


def test_an_endless_stream_of_updates_is_cut_off(tmp_path: Path) -> None:
    with agent(tmp_path / "port", "grpc") as url, pytest.raises(OutputContractBroken, match="more than"):
        call("chatter", url)


def test_a_whole_number_that_would_change_on_the_way_is_refused_before_it_is_sent(card: str) -> None:
    with pytest.raises(InputContractBroken, match=r"\$.seconds"):
        call("lookup", card, {"city": "A", "seconds": 2**60})


def test_an_agent_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(AgentUnreachable, match="card"):
        call("lookup", "http://127.0.0.1:9")


@contextmanager
def cards(*answers: Any) -> Iterator[str]:
    """A server that gives one answer after the other, and the last for ever: bytes, a card, or a redirect."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, str):
                self.send_response(302)
                self.send_header("Location", answer)
                self.end_headers()
                return
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def a_card(url: str = "http://127.0.0.1:9/", **changes: Any) -> dict[str, Any]:
    return {
        "name": "atlas",
        "version": "3.1",
        "description": "x",
        "capabilities": {"streaming": True},
        "skills": [{"id": "lookup", "name": "x", "description": "x", "tags": []}],
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        **changes,
    }


WRONG_VERSION = [{"url": "http://127.0.0.1:9", "protocolBinding": "JSONRPC", "protocolVersion": "0.3.0"}]
LIES = {
    "is larger": b"[" + b" " * 300_000 + b"]",
    "not an A2A card": b"<html>hello</html>",
    "no version": a_card(version=""),
    "has no skill": a_card(skills=[]),
    "offers JSONRPC 0.3.0": a_card(supportedInterfaces=WRONG_VERSION),
    "offers no interface": a_card(supportedInterfaces=[]),
    "leads to another host, 169.254.169.254": a_card("http://169.254.169.254/"),
    "requires extensions: urn:x": a_card(capabilities={"extensions": [{"uri": "urn:x", "required": True}]}),
    "redirected to another host": "http://169.254.169.254/card.json",
}


@pytest.mark.parametrize("words", LIES)
def test_a_card_that_is_not_what_the_manifest_says_is_refused(words: str) -> None:
    with cards(LIES[words]) as url, pytest.raises(AgentIncompatible, match=words) as caught:
        call("lookup", url)
    assert not caught.value.retryable


def test_another_host_may_be_named_and_then_needs_tls() -> None:
    with (
        cards(a_card("http://10.0.0.1/")) as url,
        pytest.raises(AgentIncompatible, match="only spoken to with TLS"),
    ):
        call("lookup", url, settings={"hosts": ["10.0.0.1"]})


def test_a_pinned_card_must_be_the_one() -> None:
    with cards(a_card()) as url, pytest.raises(AgentIncompatible, match="SHA-256"):
        call("lookup", url, settings={"card_sha256": "0" * 64})


def test_a_changed_card_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with agent(tmp_path / "port") as home:
        endpoint, clock = f"{home}/", FakeSeconds()
        planted = {"name": "Erika Mustermann", "version": "4111 1111 1111 1111", "description": "y"}
        with cards(a_card(endpoint), a_card(endpoint, **planted)) as url:

            async def work(engine: A2aEngine) -> None:
                for _ in range(2):
                    await engine.invoke(ask("lookup", url))
                assert "has changed" not in caplog.text
                clock.now_s += 301
                await engine.invoke(ask("lookup", url))

            with caplog.at_level(logging.WARNING):
                run(work, clock_s=clock)
    assert "the card of atlas has changed from " in caplog.text
    assert not [word for word in ("Erika", "Mustermann", "4111") if word in caplog.text]


def test_an_endpoint_that_speaks_something_else_breaks_the_contract() -> None:
    with cards(a_card()) as other, cards(a_card(f"{other}/")) as url, pytest.raises(AgentError) as caught:
        call("lookup", url)
    assert isinstance(caught.value, AgentCrashed)
    assert "HTTP 501" in caught.value.message

"""Language models behind an OpenAI-compatible endpoint: a real server that behaves in every way."""

import asyncio
import json
import logging
import resource
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents.contract import Contract
from agents.engines.openai import OpenaiEngine
from agents.engines.openai_prompt import estimated_tokens
from agents.spec import AgentSpec
from podium.errors import (
    AgentCrashed,
    AgentError,
    AgentOverLimit,
    AgentTimeout,
    AgentUnreachable,
    OutputContractBroken,
)
from tests.cases.hostile_calls import hostile_spec, invocation
from tests.fakes.model_server import model_server

KEY = "sk-planted-key-0123456789"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with model_server() as base_url:
        yield base_url


def model(url: str, name: str, **settings: Any) -> AgentSpec:
    given = {"base_url": url, "model": name, "max_output_tokens": 500, **settings}
    return hostile_spec("oracle", engine="openai", settings=given, limits={"max_output_bytes": 100_000})


async def ask(spec: AgentSpec, *, limit_s: float = 20, diagnosis: tuple[str, ...] = ()) -> Any:
    engine = OpenaiEngine({"THE_KEY": KEY})
    call = invocation(spec, "please", limit_s=limit_s)
    try:
        return await engine.invoke(replace(call, context=replace(call.context, diagnosis=diagnosis)))
    finally:
        await engine.close()


def seen(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/seen") as response:
        asked: list[dict[str, Any]] = json.load(response)
    return asked


def test_an_answer_keeps_the_contract_and_names_the_model_as_its_source(url: str) -> None:
    spec = model(url, "good", api_key_env="THE_KEY", prompt="Say {exactly} what is so.", max_confidence=0.7)
    output = asyncio.run(ask(spec, diagnosis=("$.said: too long",)))
    contract = Contract.compile(spec)
    assert contract.output_violations(contract.sanitise(output).output) == []
    assert output["confidence_score"] == 0.7
    assert output["sources"][0]["kind"] == "agent"
    assert "good answered as oracle" in output["sources"][0]["label"]
    asked = seen(url)[-1]
    assert asked["authorization"] == f"Bearer {KEY}"
    assert asked["body"]["response_format"]["json_schema"]["schema"] == spec.output_schema
    told = [message["content"] for message in asked["body"]["messages"]]
    assert "Say {exactly} what is so." in told[0]
    assert spec.description in told[0]
    assert json.loads(told[1])["input"]["word"] == "please"
    assert "- $.said: too long" in told[2]


def test_an_endpoint_without_schemas_is_asked_in_another_way_and_remembered(url: str) -> None:
    async def run() -> None:
        engine = OpenaiEngine({})
        for name, forms in (("object_only", 2), ("no_format", 3)):
            before = len(seen(url))
            for _ in range(2):
                await engine.invoke(invocation(model(url, name), "please"))
            # The second call asks as the first one succeeded.
            assert len(seen(url)) - before == forms + 1
        await engine.close()

    asyncio.run(run())


def test_fenced_json_needs_the_declared_hook(url: str) -> None:
    raw = asyncio.run(ask(model(url, "fenced")))
    with pytest.raises(OutputContractBroken):
        Contract.compile(model(url, "fenced")).sanitise(raw)
    hooked = model(url, "fenced").model_copy(update={"output_hook": "agents.output_hooks:unwrap_fenced_json"})
    made = Contract.compile(hooked).sanitise(asyncio.run(ask(hooked)))
    assert made.output["confidence_score"] == 0.8
    assert made.repairs


@pytest.mark.parametrize("name", ["prose", "wrong_types"])
def test_what_breaks_the_contract_is_refused(url: str, name: str) -> None:
    spec = model(url, name)
    raw = asyncio.run(ask(spec))
    contract = Contract.compile(spec)
    try:
        assert contract.output_violations(contract.sanitise(raw).output)
    except OutputContractBroken as error:
        assert name == "prose", error.message  # noqa: PT017 - either way of refusing is one


def test_a_model_that_names_no_source_is_itself_the_source(url: str) -> None:
    output = asyncio.run(ask(model(url, "unsourced")))
    assert [source["kind"] for source in output["sources"]] == ["agent"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("truncated", AgentOverLimit, "max_output_tokens of 500"),
        ("long", AgentOverLimit, "max_output_bytes of 100000"),
        ("endless", AgentOverLimit, "max_output_bytes of 100000"),
        ("gigabyte", AgentOverLimit, "max_output_bytes of 100000"),
        ("filtered", AgentCrashed, "content_filter"),
        ("refuses", AgentCrashed, "I would rather not."),
        ("tool_call", AgentCrashed, "tool_calls"),
        ("no_end", AgentUnreachable, "broke off"),
        ("dies", AgentUnreachable, "oracle"),
        ("busy", AgentUnreachable, "429"),
        ("broken", AgentUnreachable, "a fuse blew"),
        ("redirect", AgentCrashed, "307"),
        ("html", AgentUnreachable, "broke off"),
        ("nonsense", AgentCrashed, "nonsense"),
        ("gzip", AgentUnreachable, "oracle"),
        ("bad_key", AgentCrashed, "no such key"),
    ],
)
def test_every_failure_is_typed_and_names_the_agent(
    url: str, name: str, kind: type[AgentError], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(kind) as caught:
        asyncio.run(ask(model(url, name, api_key_env="THE_KEY")))
    assert type(caught.value) is kind
    assert caught.value.agent == "oracle"
    assert words in caught.value.message
    assert KEY not in caught.value.message + caplog.text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_a_busy_endpoint_says_for_how_long(url: str) -> None:
    with pytest.raises(AgentUnreachable) as caught:
        asyncio.run(ask(model(url, "busy")))
    assert caught.value.retryable
    assert caught.value.retry_after == timedelta(seconds=7)


def test_one_that_hangs_or_is_not_there(url: str) -> None:
    with pytest.raises(AgentTimeout, match=r"within 0\.3 s"):
        asyncio.run(ask(model(url, "hang"), limit_s=0.3))
    with pytest.raises(AgentUnreachable, match="cannot be reached"):
        asyncio.run(ask(model("http://127.0.0.1:9/v1", "good")))


def test_a_prompt_that_does_not_fit_is_not_sent(url: str) -> None:
    before = len(seen(url))
    with pytest.raises(AgentOverLimit, match="limit context_tokens is 32768"):
        asyncio.run(ask(model(url, "good", prompt="word " * 20_000)))
    assert len(seen(url)) == before


def test_a_key_that_is_not_set_is_named_by_its_variable(url: str) -> None:
    with pytest.raises(AgentCrashed, match="OTHER_KEY"):
        asyncio.run(ask(model(url, "good", api_key_env="OTHER_KEY")))


@pytest.mark.parametrize(
    "base_url", ["http://models.example/v1", "https://user:word@models.example/v1", "ftp://x"]
)
def test_an_endpoint_elsewhere_is_spoken_to_over_https_only(base_url: str) -> None:
    with pytest.raises(ValueError, match=r"https|credentials|URL"):
        model(base_url, "good")


def test_the_estimate_counts_other_scripts_twice() -> None:
    assert estimated_tokens([{"role": "user", "content": "ab"}], None) == 17
    assert estimated_tokens([{"role": "user", "content": "发票"}], None) == 20

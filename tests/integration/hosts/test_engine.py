"""The engine and real hosts: death, retries elsewhere, drains, restarts, black holes, writes."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from agents.canonical import sha256_of
from agents.contract import Contract
from agents.engines.foreign import AgentIncompatible
from agents.spec import AgentSpec, load_spec
from podium.agent_host.errors import HostBusy, IdempotencyKeyReused, OutcomeUnknown
from podium.errors import (
    AgentCrashed,
    AgentError,
    AgentOverLimit,
    AgentTimeout,
    AgentUnreachable,
    OutputContractBroken,
)
from tests.fakes.examples import free_port
from tests.fakes.proxy import Fault, FaultProxy
from tests.integration.hosts.ground import HostProcess, ask, call, eventually, hosting, in_clear, spec
from tests.integration.server import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "weather" / "weather.py"


def pid_of(said: str) -> int:
    return int(said.split()[0])


def _running_in(folder: Path) -> int:
    (seen,) = folder.glob("running-*")
    return int(seen.name.removeprefix("running-"))


async def failing(engine: Any, invocation: Any) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await engine.invoke(invocation)
    assert caught.value.agent == invocation.spec.name
    return caught.value


def test_the_example_of_thirty_lines_runs_as_it_stands(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 30
    # But for its port, which somebody on this machine may be trying it on.
    port = free_port()
    for file in (EXAMPLE, EXAMPLE.with_suffix(".yaml")):
        (tmp_path / file.name).write_text(file.read_text().replace("127.0.0.1:7500", f"127.0.0.1:{port}"))
    agent = load_spec(tmp_path / "weather.yaml")
    contract = Contract.compile(agent)

    async def asked(city: str) -> dict[str, Any]:
        engine = in_clear()
        try:
            raw = await engine.invoke(replace(call(agent), inputs={"city": city}))
        finally:
            await engine.close()
        output = contract.sanitise(raw).output
        assert not contract.output_violations(output)
        return output

    process = subprocess.Popen([sys.executable, str(tmp_path / EXAMPLE.name)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"listening on 127.0.0.1:{port}\n"
        assert asyncio.run(asked(" ZURICH"))["celsius"] == 9.4
        assert asyncio.run(asked("Atlantis"))["confidence_score"] == 0.2
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_an_agent_hears_what_it_may_know_and_its_errors_keep_their_kind(tmp_path: Path) -> None:
    async def tried(agent: AgentSpec) -> None:
        engine = in_clear()
        assert (await ask(engine, call(agent, attempt=2))).endswith(" 2 ann")
        for do, kind, words in (
            ("raise", AgentCrashed, "ZeroDivisionError"),
            ("exit", AgentCrashed, "SystemExit"),
            ("limit", AgentOverLimit, "too much of everything"),
            ("deny", AgentCrashed, "no token"),
            ("nan", OutputContractBroken, "not JSON"),
            ("object", OutputContractBroken, "not JSON"),
            ("wrong", OutputContractBroken, "breaks its schema"),
            ("big:400000", AgentOverLimit, "max_output_bytes"),
        ):
            error = await failing(engine, call(agent, do))
            assert type(error) is kind, do
            assert words in error.message, do
        assert len(await ask(engine, call(agent, "big:290000"))) == 290_000
        await engine.close()

    with hosting(tmp_path) as host:
        asyncio.run(tried(spec(host.address)))
        assert host.stop() == 0


def test_a_host_that_dies_in_the_middle_is_named_and_the_next_attempt_goes_to_another(tmp_path: Path) -> None:
    async def tried(hosts: dict[int, HostProcess], agent: AgentSpec) -> None:
        engine = in_clear()
        running = asyncio.create_task(engine.invoke(call(agent, f"hold:{tmp_path}")))
        await eventually(lambda: [*tmp_path.glob("running-*")])
        victim = hosts[_running_in(tmp_path)]
        victim.kill()
        with pytest.raises(AgentUnreachable) as caught:
            await running
        assert caught.value.retryable
        assert not caught.value.before_call
        assert victim.address in "".join(caught.value.evidence)
        for number in range(8):
            said = await ask(engine, call(agent, attempt=2 + number))
            assert pid_of(said) in hosts.keys() - {victim.pid}
        await engine.close()

    with hosting(tmp_path / "a") as one, hosting(tmp_path / "b") as two:
        asyncio.run(tried({one.pid: one, two.pid: two}, spec(one.address, two.address)))


def test_calls_spread_over_hosts_by_how_busy_they_are(tmp_path: Path) -> None:
    async def tried(agent: AgentSpec) -> None:
        engine = in_clear()
        await asyncio.gather(*(ask(engine, call(agent)) for _ in range(2)))
        said = await asyncio.gather(*(ask(engine, call(agent, "sleep:0.2")) for _ in range(8)))
        pids = [pid_of(one) for one in said]
        assert sorted(pids.count(pid) for pid in set(pids)) == [4, 4]
        await engine.close()

    with hosting(tmp_path / "a") as one, hosting(tmp_path / "b") as two:
        asyncio.run(tried(spec(one.address, two.address)))


def test_a_host_that_is_away_is_reached_again_when_it_is_back(tmp_path: Path) -> None:
    async def tried() -> None:
        engine = in_clear()
        with hosting(tmp_path / "a") as host:
            agent = spec(host.address)
            first = pid_of(await ask(engine, call(agent)))
            host.kill()
        for _ in range(10):  # more than open the breaker
            assert isinstance(await failing(engine, call(agent)), AgentUnreachable)
        left_alone = await failing(engine, call(agent))
        assert left_alone.retry_after is not None
        assert isinstance(left_alone, AgentUnreachable)
        assert left_alone.before_call
        with hosting(tmp_path / "a", listen=host.address):
            said: list[str] = []

            async def back() -> None:
                while not said:
                    try:
                        said.append(await ask(engine, call(agent)))
                    except AgentUnreachable:
                        await asyncio.sleep(0.05)

            await asyncio.wait_for(back(), 15)
            assert pid_of(said[0]) != first
        await engine.close()

    asyncio.run(tried())


def test_a_host_that_stops_finishes_what_runs_and_new_calls_go_elsewhere_within_one_attempt(
    tmp_path: Path,
) -> None:
    async def tried(one: HostProcess, two: HostProcess) -> None:
        engine = in_clear()
        running = asyncio.create_task(ask(engine, call(spec(one.address), f"hold:{tmp_path}")))
        await eventually(lambda: [*tmp_path.glob("running-*")])
        one.process.terminate()
        draining = spec(one.address)
        for _ in range(200):
            error = await _outcome(engine, call(draining, limit_s=2))
            if error is not None:
                break
        assert isinstance(error, AgentUnreachable)
        assert "took no call" in error.message
        writes = spec(one.address, two.address, side_effects="write")
        for number in range(4):
            assert pid_of(await ask(engine, call(writes, key=f"w/{number}"))) == two.pid
        (tmp_path / "go").touch()
        assert pid_of(await running) == one.pid
        assert one.process.wait(20) == 0
        await engine.close()

    with hosting(tmp_path / "a") as one, hosting(tmp_path / "b", side_effects="write") as two:
        asyncio.run(tried(one, two))


def test_a_host_that_stops_while_somebody_watches_its_health_says_nothing_of_it(tmp_path: Path) -> None:
    with hosting(tmp_path) as host, grpc.insecure_channel(host.address) as channel:
        watches = [
            health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
            for _ in range(4)
        ]
        for watch in watches:
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        assert host.stop() == 0
        assert host.log.read_text() == ""


async def _outcome(engine: Any, invocation: Any) -> AgentError | None:
    try:
        await engine.invoke(invocation)
    except AgentError as error:
        return error
    return None


def test_the_first_of_two_hosts_swallows_everything_and_the_second_answers_in_time(tmp_path: Path) -> None:
    async def tried(host: HostProcess) -> None:
        engine = in_clear()
        async with FaultProxy(host.address) as proxy:
            proxy.break_with(Fault.BLACK_HOLE)
            agent = spec(proxy.address, host.address)
            for number in range(4):
                assert pid_of(await ask(engine, call(agent, limit_s=4, key=f"t/{number}"))) == host.pid
            alone = await failing(engine, call(spec(proxy.address), limit_s=1))
            assert isinstance(alone, AgentTimeout | AgentUnreachable)
            await engine.close()

    with hosting(tmp_path) as host:
        asyncio.run(tried(host))


def test_a_black_hole_that_opens_during_a_call_is_noticed(tmp_path: Path) -> None:
    async def tried(host: HostProcess) -> None:
        engine = in_clear()
        async with FaultProxy(host.address) as proxy:
            agent = spec(proxy.address, host.address)
            await ask(engine, call(agent))
            await ask(engine, call(agent))
            running = [asyncio.create_task(ask(engine, call(agent, "sleep:1", limit_s=3))) for _ in range(2)]
            # Both are on their way, one through the proxy.
            await eventually(lambda: sum(one.in_flight for one in engine._endpoints.values()) == 2)
            proxy.break_with(Fault.BLACK_HOLE)
            outcomes = await asyncio.gather(*running, return_exceptions=True)
            (lost,) = [one for one in outcomes if isinstance(one, BaseException)]
            assert isinstance(lost, AgentTimeout)
            # The same step, once more: elsewhere.
            assert pid_of(await ask(engine, call(agent, attempt=2))) == host.pid
            await engine.close()

    with hosting(tmp_path) as host:
        asyncio.run(tried(host))


def test_who_gives_up_is_noticed_by_the_agent_and_a_deadline_ends_the_call(tmp_path: Path) -> None:
    async def tried(agent: AgentSpec) -> None:
        engine = in_clear()
        assert isinstance(await failing(engine, call(agent, f"hold:{tmp_path}", limit_s=0.7)), AgentTimeout)
        await eventually((tmp_path / "cancelled").exists)
        (tmp_path / "cancelled").unlink()
        (tmp_path / f"running-{_running_in(tmp_path)}").unlink()
        running = asyncio.create_task(engine.invoke(call(agent, f"hold:{tmp_path}")))
        await eventually(lambda: [*tmp_path.glob("running-*")])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await eventually((tmp_path / "cancelled").exists)
        await engine.close()

    with hosting(tmp_path / "a") as host:
        asyncio.run(tried(spec(host.address)))


def test_a_host_takes_no_more_than_it_can_do(tmp_path: Path) -> None:
    async def tried(agent: AgentSpec) -> None:
        engine = in_clear()
        calls = [
            asyncio.create_task(ask(engine, call(agent, f"hold:{tmp_path}", key=f"t/{number}", limit_s=20)))
            for number in range(100)
        ]
        # Two threads, and 64 that wait.
        await eventually(lambda: sum(one.done() for one in calls) == 34)
        (tmp_path / "go").touch()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refused = [one for one in outcomes if isinstance(one, BaseException)]
        assert len(refused) == 34
        assert all(isinstance(one, AgentUnreachable) and "took no call" in one.message for one in refused)
        await engine.close()

    assert HostBusy.retryable
    with hosting(tmp_path / "a", "--insecure-loopback", "--threads", "2") as host:
        asyncio.run(tried(spec(host.address)))


def test_a_write_happens_once_for_its_key_while_and_after_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "written"

    async def tried(agent: AgentSpec) -> None:
        engine = in_clear()
        said = await asyncio.gather(*(ask(engine, call(agent, f"write:{file}", key="t/a")) for _ in range(5)))
        assert len(set(said)) == 1
        assert await ask(engine, call(agent, f"write:{file}", key="t/a", attempt=2)) == said[0]
        await ask(engine, call(agent, f"write:{file}", key="t/b"))
        assert [line.split()[1] for line in file.read_text().splitlines()] == ["t/a", "t/b"]
        assert isinstance(await failing(engine, call(agent, "answer", key="t/a")), IdempotencyKeyReused)
        # Whoever asked has gone; the write is finished, and asking again gets its outcome.
        assert isinstance(
            await failing(engine, call(agent, f"write:{file}", key="t/c", limit_s=0.1)), AgentTimeout
        )
        await ask(engine, call(agent, f"write:{file}", key="t/c"))
        assert len(file.read_text().splitlines()) == 3
        await engine.close()

    with hosting(tmp_path / "a", side_effects="write") as host:
        asyncio.run(tried(spec(host.address, side_effects="write")))


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_write_that_a_dead_host_began_is_run_again_only_where_that_does_no_harm(
    tmp_path: Path, idempotent: bool
) -> None:
    options = ("--insecure-loopback", "--outcomes", str(tmp_path / "outcomes.sqlite"))
    changes: dict[str, Any] = {"side_effects": "write"}
    settings = {"insecure_loopback": True, "idempotent": idempotent}

    async def tried() -> None:
        engine = in_clear()
        given = {**changes, "settings": {"endpoints": ["127.0.0.1:1"], **settings}}
        with hosting(tmp_path / "a", *options, **given) as host:
            agent = spec(**{**changes, "settings": {"endpoints": [host.address], **settings}})
            done = await ask(engine, call(agent, key="t/done"))
            running = asyncio.create_task(engine.invoke(call(agent, f"hold:{tmp_path}", key="t/lost")))
            await eventually(lambda: [*tmp_path.glob("running-*")])
            host.kill()
            with pytest.raises(AgentUnreachable):
                await running
        (tmp_path / "go").touch()
        with hosting(tmp_path / "a", *options, listen=host.address, **given):
            # The connection comes back by itself.
            assert await _when_back(lambda: ask(engine, call(agent, key="t/done"))) == done
            again = call(agent, f"hold:{tmp_path}", key="t/lost", attempt=2)
            if idempotent:
                assert await ask(engine, again)
            else:
                assert isinstance(await failing(engine, again), OutcomeUnknown)
        await engine.close()

    asyncio.run(tried())


async def _when_back(attempt: Callable[[], Any]) -> Any:
    for _ in range(200):
        try:
            return await attempt()
        except AgentUnreachable:
            await asyncio.sleep(0.05)
    raise AssertionError("it did not come back")


def test_another_version_or_schema_is_refused_with_both_hashes_and_a_host_that_fits_is_found(
    tmp_path: Path,
) -> None:
    wider = json.loads(json.dumps(spec().input_schema))
    wider["properties"]["do"]["maxLength"] = 7

    async def tried(old: HostProcess, new: HostProcess) -> None:
        engine = in_clear()
        error = await failing(engine, call(spec(old.address, version="2.0.0")))
        assert isinstance(error, AgentIncompatible)
        assert "2.0.0" in error.message
        assert "1.0.0" in error.message
        other = await failing(engine, call(spec(old.address, input_schema=wider)))
        assert isinstance(other, AgentIncompatible)
        assert sha256_of(wider) in other.message
        assert sha256_of(spec().input_schema) in other.message
        for number in range(4):
            agent = spec(old.address, new.address, version="2.0.0")
            assert pid_of(await ask(engine, call(agent, key=f"t/{number}"))) == new.pid
        await engine.close()

    with hosting(tmp_path / "a") as old, hosting(tmp_path / "b", version="2.0.0") as new:
        asyncio.run(tried(old, new))

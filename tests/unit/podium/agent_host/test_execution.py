"""Running functions: what happens to a call's place when it cannot be run."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from podium.agent_host import CallContext, HostBusy
from podium.agent_host.execution import Executor
from podium.v1 import agent_pb2


def test_a_call_that_gets_no_thread_was_not_run_and_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    context = CallContext.of(agent_pb2.InvocationContext(task_id="t"), ends_at_s=0.0)

    def answer(inputs: Mapping[str, Any], context: CallContext) -> str:
        return context.task_id

    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scenario() -> None:
        executor = Executor(threads=1, waiting=0)
        with monkeypatch.context() as scarce:
            scarce.setattr(threading.Thread, "start", none_left)
            for _ in range(2):
                with pytest.raises(HostBusy, match="no thread"):
                    await executor.run(answer, {}, context, "weather")
        assert await executor.run(answer, {}, context, "weather") == "t"

    asyncio.run(scenario())

"""The runner on the good path: order, parallelism, log, answer."""

import asyncio

from podium.v1 import status_pb2
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import stage


def test_runs_a_plan_to_its_answer() -> None:
    async def scenario() -> None:
        play = stage(SPECS, SCRIPTS, PLAN)
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.result is not None
        assert state.result.answer_markdown == "Sales were 6.5 EUR [Source: S1]"
        assert [source.id for source in state.result.sources] == ["S1"]
        assert len(state.result.snapshot_sha256) == 64
        assert play.engine.named()[0] == "parse"
        assert sorted(play.engine.named()[1:3]) == ["lookup", "retrieve"]
        assert play.engine.named()[3:] == ["code", "report"]
        assert play.engine.most_active == 2
        assert state.reward is not None
        assert 0.8 < state.reward.final <= 1

    asyncio.run(scenario())

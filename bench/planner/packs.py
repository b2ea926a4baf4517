"""The Chinese requests to the packs, planned as a server plans a task: normalised, wired, verified.

python -m bench.planner.packs --model planner.onnx --planner policy --out OUT.jsonl

A request that is refused has no plan; one that is asked back has the plan that asks.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.invocation import Caller
from bench.plans.reading import ChineseTask, read_chinese
from cloud.planning import policy_planner
from cloud.specialists import Specialists, load_specialists
from conductor.planner import Planner, Situation
from conductor.policy.model import PlannerModel
from conductor.request import build_request
from conductor.state import TaskState
from conductor.training.local import local_planner
from podium.errors import PodiumError

# Within the quarter after the data of the sales pack ends, so that "last quarter" has data.
AS_OF = datetime(2026, 10, 15, 9, tzinfo=UTC)
_DEVICE_PAYLOAD: dict[str, Any] = {"pages": []}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner.packs", description=__doc__)
    parser.add_argument("--model", type=Path, help="a planner's file; the one that ships by default")
    parser.add_argument("--planner", choices=("policy", "rules"), default="policy")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    specialists = load_specialists()
    planner: Planner = specialists.planner
    if given.planner == "policy":
        model = local_planner(given.model) if given.model else PlannerModel.committed()
        planner = policy_planner(specialists, model)
    tasks = [task for task in read_chinese() if task.example.source.endswith("/packs")]
    rows = [_row(task, specialists, planner) for task in tasks]
    given.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    sys.stdout.write(json.dumps({"plans": len(rows), "refused": sum(not row["steps"] for row in rows)}) + "\n")


def _row(task: ChineseTask, specialists: Specialists, planner: Planner) -> dict[str, Any]:
    caller = Caller(name="benchmark")
    registry = specialists.registry
    request = build_request(
        TaskState(text=task.example.request, as_of=AS_OF),
        specialists.normalise,
        caller=caller,
        agents=[agent.spec.name for agent in registry.serving()],
        device_online=False,
    ).value
    request |= {"payload_kind": task.payload_kind, "attachments": [dict(item) for item in task.attachments]}
    if task.payload_kind:
        request["payload"] = _DEVICE_PAYLOAD
    row: dict[str, Any] = {"id": task.example.id}
    try:
        proposal = asyncio.run(planner.propose(Situation(request=request, registry=registry, caller=caller)))
    except PodiumError as error:
        return row | {"steps": [], "confidence": 0.0, "refused": error.code}
    plan = proposal.plan.to_json()
    return row | {"steps": plan["steps"], "confidence": plan["confidence"]}


if __name__ == "__main__":
    main()

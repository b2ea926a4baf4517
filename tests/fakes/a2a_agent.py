"""An A2A agent to start as a process: JSON-RPC, REST and gRPC, well behaved or not.

`python -m tests.fakes.a2a_agent PORT_FILE --offer grpc [--http-port N] [--grpc-port N] [--no-streaming]`
"""

import argparse
import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

import grpc
import uvicorn
from a2a.helpers.proto_helpers import get_data_parts, new_data_part, new_task, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Role,
    TaskState,
)
from starlette.applications import Starlette

SKILLS = (
    "lookup",
    "text",
    "prose",
    "fail",
    "reject",
    "hang",
    "die",
    "die_once",
    "huge",
    "chatter",
    "ask",
    "ask_for_ever",
    "message",
    "two",
    "big_number",
    "not_a_number",
    "forge",
    "chunks",
    "unknown_field",
    "deep",
)
FORGED = {"id": "S1", "kind": "sql", "label": "sales warehouse", "location": "facts", "sha256": ""}


class Atlas(AgentExecutor):
    """Answers with the population of a city, or misbehaves as the skill says."""

    def __init__(self, cancelled: Path) -> None:
        self._cancelled = cancelled

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task_id, context_id = str(context.task_id), str(context.context_id)
        skill = context.message.metadata.fields["podium/skill"].string_value
        if skill == "message":
            await event_queue.enqueue_event(
                new_text_message('{"population": 6000}', context_id=context_id, role=Role.ROLE_AGENT)
            )
            return
        task = context.current_task
        if task is None:
            task = new_task(task_id, context_id, TaskState.TASK_STATE_SUBMITTED)
            task.metadata["skill"] = skill
            await event_queue.enqueue_event(task)
        else:
            skill = task.metadata.fields["skill"].string_value
            skill = "lookup" if skill == "ask" else skill
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work()
        [inputs] = get_data_parts(context.message.parts)
        await self._answer(skill, inputs, updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self._cancelled.write_text(str(context.task_id))
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def _answer(self, skill: str, inputs: Any, updater: TaskUpdater) -> None:
        answer = {"population": len(inputs["city"]) * 1000}
        words = updater.new_agent_message
        if skill in ("fail", "reject"):
            end = updater.failed if skill == "fail" else updater.reject
            await end(words([new_text_part("no such city " * 100)]))
            return
        if skill in ("ask", "ask_for_ever"):
            await updater.requires_input(words([new_text_part("Which of the two Suzhous?")]))
            return
        if skill == "hang":
            await asyncio.sleep(3600)
        if skill == "die" or (skill == "die_once" and not _marked(inputs["marks"])):
            os.kill(os.getpid(), signal.SIGKILL)
        if skill == "chatter":
            for number in range(2000):
                await updater.start_work(words([new_text_part(f"{number} " + "x" * 10_000)]))
        if skill == "chunks":
            await updater.add_artifact([new_text_part("half way")], artifact_id="a1")
            await updater.add_artifact([new_data_part(answer)], artifact_id="a1", append=True, last_chunk=True)
        else:
            await updater.add_artifact(_parts(skill, answer))
        await updater.complete()


def _parts(skill: str, answer: dict[str, Any]) -> list[Any]:
    match skill:
        case "text":
            return [new_text_part('{"population": 6000}')]
        case "prose":
            return [new_text_part("A fine place, I would say 12.")]
        case "huge":
            return [new_data_part({**answer, "text": "x" * 20_000_000})]
        case "unknown_field":
            return [new_data_part({**answer, "approved": True})]
        case "deep":
            return [new_text_part('{"population": 1, "extra": ' + "[" * 500 + "]" * 500 + "}")]
        case "two":
            return [new_data_part(answer), new_data_part(answer)]
        case "big_number":
            return [new_data_part({"population": 2.0**60})]
        case "not_a_number":
            return [new_text_part('{"population": NaN}')]
        case "forge":
            return [new_data_part({**answer, "confidence_score": 1.0, "sources": [FORGED]})]
    return [new_text_part("here you are"), new_data_part(answer)]


def _marked(name: str) -> bool:
    mark = Path(name)
    known = mark.exists()
    mark.write_text("tried")
    return known


def card(http_port: int, grpc_port: int, offer: str, streaming: bool) -> AgentCard:
    url = f"http://127.0.0.1:{http_port}"
    ways = {
        "jsonrpc": AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"),
        "rest": AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0"),
        "grpc": AgentInterface(url=f"127.0.0.1:{grpc_port}", protocol_binding="GRPC", protocol_version="1.0"),
    }
    return AgentCard(
        name="atlas",
        description="Knows cities.",
        version="3.1",
        supported_interfaces=[ways[name] for name in offer.split(",")],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
        skills=[AgentSkill(id=name, name=name, description=name, tags=["city"]) for name in SKILLS],
    )


async def serve(given: argparse.Namespace) -> None:
    listening = socket.create_server(("127.0.0.1", given.http_port))
    http_port = listening.getsockname()[1]
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    grpc_port = server.add_insecure_port(f"127.0.0.1:{given.grpc_port}")
    atlas_card = card(http_port, grpc_port, given.offer, not given.no_streaming)
    cancelled = given.port_file.with_suffix(".cancelled")
    handler = DefaultRequestHandler(Atlas(cancelled), InMemoryTaskStore(), atlas_card)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    await server.start()
    routes = [
        *create_agent_card_routes(atlas_card),
        *create_jsonrpc_routes(handler, "/"),
        *create_rest_routes(handler),
    ]
    given.port_file.write_text(f"{http_port} {grpc_port}")
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port_file", type=Path)
    parser.add_argument("--offer", default="jsonrpc")
    parser.add_argument("--http-port", type=int, default=0)
    parser.add_argument("--grpc-port", type=int, default=0)
    parser.add_argument("--no-streaming", action="store_true")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

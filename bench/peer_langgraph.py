"""The peer: the same five-node graph in LangGraph with its own SQLite checkpointer."""

import operator
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.measuring import Contender


class GraphState(TypedDict, total=False):
    """What travels between the nodes."""

    request: str
    text: str
    branches: Annotated[list[str], operator.add]
    answer: str


async def _parse(state: GraphState) -> GraphState:
    return {"text": state["request"]}


async def _branch(state: GraphState) -> GraphState:
    return {"branches": [state["text"]]}


async def _code(state: GraphState) -> GraphState:
    return {"text": "".join(state["branches"])}


async def _report(state: GraphState) -> GraphState:
    return {"answer": f"Done: {len(state['text'])} characters."}


def graph() -> StateGraph[GraphState]:
    """Parse → retrieve ∥ lookup → code → report."""
    builder = StateGraph(GraphState)
    for name, node in (
        ("parse", _parse),
        ("retrieve", _branch),
        ("lookup", _branch),
        ("code", _code),
        ("report", _report),
    ):
        builder.add_node(name, node)
    builder.add_edge(START, "parse")
    builder.add_edge("parse", "retrieve")
    builder.add_edge("parse", "lookup")
    builder.add_edge(["retrieve", "lookup"], "code")
    builder.add_edge("code", "report")
    builder.add_edge("report", END)
    return builder


@asynccontextmanager
async def contender(folder: Path, *, durability: str) -> AsyncIterator[Contender]:
    """The graph with its checkpointer, open.

    Args:
        folder: Where the checkpoint file is made.
        durability: LangGraph's own word: "sync" writes each checkpoint before the next step starts, "async"
            while it runs, "exit" only at the end.
    """
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement.strip().upper().startswith("COMMIT")

    async with aiosqlite.connect(folder / f"langgraph-{durability}.sqlite") as connection:
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        await connection.set_trace_callback(count)
        compiled = graph().compile(checkpointer=saver)

        async def one(text: str) -> None:
            config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
            # Its overloads want the literal words of `durability`, not a string.
            result = await compiled.ainvoke({"request": text}, config, durability=durability)  # type: ignore[call-overload]
            if not result["answer"].startswith("Done"):
                raise AssertionError(result)

        yield Contender(
            name=f"langgraph-{durability}",
            one=one,
            cpu_s=time.process_time,
            # Its connection keeps SQLite's default, synchronous = FULL: every commit is synced.
            commits=lambda: (commits, commits),
        )

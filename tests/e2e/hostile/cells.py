"""Hostility x engine: what each agent of the matrix does, and how the server must take it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cases.hostile_agents import OUTPUTS

BROKEN, TIMEOUT, CRASHED = "OUTPUT_CONTRACT_BROKEN", "AGENT_TIMEOUT", "AGENT_CRASHED"
UNREACHABLE, OVER, INCOMPATIBLE = "AGENT_UNREACHABLE", "AGENT_OVER_LIMIT", "AGENT_INCOMPATIBLE"
SHORT_S = 1.5
"""The time limit of agents that never answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One agent that misbehaves in one way."""

    engine: str
    """Column: an engine, or a way of one."""
    hostility: str
    """Row, in the words of the issue."""
    word: str
    """What the fake behind the engine is told to do."""
    codes: tuple[str, ...]
    """One of these is in the event log for every attempt; none if it is contained without a failure."""
    timeout_s: float = 15.0
    retries: int = 0
    fallback: bool = False
    """Another agent takes over, and the task succeeds."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its agent."""
        way = "_again" * bool(self.retries) + "_relieved" * self.fallback
        return f"{self.engine}_{self.word.replace(':', '_')}{way}"

    @property
    def succeeds(self) -> bool:
        """Whether the task ends well all the same."""
        return self.fallback or not self.codes


def _cells(engine: str, *rows: tuple[str, str, str], **shared: Any) -> Iterator[Cell]:
    for hostility, word, codes in rows:
        accepted = tuple(codes.split("|")) if codes else ()
        timeout_s = SHORT_S if TIMEOUT in accepted else 15.0
        if engine == "mcp_stdio":
            # Its program is started first, and every cell has one of its own.
            timeout_s = 12.0 if TIMEOUT in accepted else 60.0
        yield Cell(engine=engine, hostility=hostility, word=word, codes=accepted, timeout_s=timeout_s, **shared)


_PYTHON_ROWS = {
    "prose": "prose",
    "huge": "1 GB of output",
    "nan": "NaN",
    "deep": "deep nesting",
    "unknown_field": "unknown fields",
    "overconfident": "forged confidence",
    "invented_source": "forged sources",
}
_PYTHON_CODES = {
    "invented_source": "ANSWER_WITHOUT_SOURCE",
    **dict.fromkeys(("exit", "crash", "recursion"), CRASHED),
}

CELLS: tuple[Cell, ...] = (
    *_cells(
        "python",
        *(
            (_PYTHON_ROWS.get(word, word.replace("_", " ")), word, _PYTHON_CODES.get(word, BROKEN))
            for word in (*sorted(set(OUTPUTS) - {"good"}), "exit", "crash", "recursion")
        ),
        # Of the manifest in tests/cases/packs/hostile.
        retries=1,
    ),
    *_cells(
        "process",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "gigabyte", OVER),
        ("1 GB of output", "claim_a_gigabyte", OVER),
        ("endless stream", "stream", f"{OVER}|{BROKEN}"),
        ("endless stream", "print_forever", OVER),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "nan", BROKEN),
        ("deep nesting", "deep", BROKEN),
        ("forged confidence", "confidence_two", BROKEN),
        ("forged confidence", "confidence_nan", BROKEN),
        ("memory bomb", "hoard", OVER),
        ("memory bomb", "hoard_shared", OVER),
        ("memory bomb", "hoard_in_children", OVER),
        ("fork bomb", "fork_bomb", OVER),
        ("fork bomb", "thread_bomb", OVER),
        ("fork bomb", "daemon", OVER),
        ("sleep past its SLA", "sleep", TIMEOUT),
        ("sleep past its SLA", "deaf", TIMEOUT),
        ("endless work", "spin", OVER),
        ("full disk", "big_file", OVER),
        ("attack on others", "kill_everybody", ""),
        ("death", "segfault", CRASHED),
    ),
    *_cells("process", ("death", "exit", CRASHED), retries=1),
    *_cells("process", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "openai",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "gigabyte", OVER),
        ("endless stream", "endless", f"{OVER}|{TIMEOUT}"),
        ("wrong schema hash", "wrong_types", BROKEN),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "nan", BROKEN),
        ("deep nesting", "deep", BROKEN),
        ("forged confidence", "overconfident", ""),
        ("forged sources", "forged", ""),
        ("sleep past its SLA", "hang", TIMEOUT),
        ("sleep past its SLA", "drip", TIMEOUT),
        ("death", "dies", UNREACHABLE),
        ("compression bomb", "bomb", f"{UNREACHABLE}|{CRASHED}"),
        ("header bomb", "headers", f"{UNREACHABLE}|{CRASHED}"),
        ("redirect", "redirect", CRASHED),
    ),
    *_cells("openai", ("death", "broken", UNREACHABLE), retries=1),
    *_cells("openai", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "a2a",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "huge", BROKEN),
        ("endless stream", "chatter", BROKEN),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "not_a_number", BROKEN),
        ("deep nesting", "deep", f"{BROKEN}|{CRASHED}"),
        ("forged confidence", "forge", ""),
        ("sleep past its SLA", "hang", TIMEOUT),
        ("questions for ever", "ask_for_ever", BROKEN),
    ),
    *_cells("a2a", ("wrong schema hash", "text", INCOMPATIBLE), settings={"card_sha256": "0" * 64}),
    *_cells("a2a", ("death", "fail", CRASHED), retries=1),
    *_cells("a2a", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "mcp_http",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "huge", BROKEN),
        ("endless stream", "chatter", f"{BROKEN}|{TIMEOUT}"),
        ("wrong schema hash", "other_inputs", INCOMPATIBLE),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "not_a_number", BROKEN),
        ("deep nesting", "deep", f"{BROKEN}|{CRASHED}"),
        ("forged confidence", "forge", ""),
        ("sleep past its SLA", "hang", TIMEOUT),
    ),
    *_cells("mcp_http", ("death", "fail", CRASHED), retries=1),
    *_cells("mcp_http", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "mcp_stdio",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "huge", f"{BROKEN}|{OVER}"),
        ("endless stream", "chatter", f"{BROKEN}|{TIMEOUT}|{OVER}"),
        ("wrong schema hash", "other_inputs", INCOMPATIBLE),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "not_a_number", BROKEN),
        ("deep nesting", "deep", f"{BROKEN}|{CRASHED}"),
        ("forged confidence", "forge", ""),
        ("sleep past its SLA", "hang", TIMEOUT),
        ("memory bomb", "word:hoard", OVER),
        ("fork bomb", "word:fork_bomb", OVER),
        ("endless work", "word:spin", OVER),
    ),
    *_cells("mcp_stdio", ("death", "die", UNREACHABLE), retries=1),
    *_cells("mcp_stdio", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "grpc",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "big:2000000", f"{BROKEN}|{OVER}"),
        ("wrong schema hash", "other_schema", INCOMPATIBLE),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "nan", BROKEN),
        ("deep nesting", "deep", f"{BROKEN}|{CRASHED}"),
        ("forged confidence", "overconfident", BROKEN),
        ("sleep past its SLA", "sleep:9", TIMEOUT),
        ("forged error", "deny", CRASHED),
    ),
    *_cells("grpc", ("death", "raise", CRASHED), retries=1),
    *_cells("grpc", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "onnx",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "huge", BROKEN),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "nan", BROKEN),
        ("deep nesting", "deep", BROKEN),
        ("forged confidence", "overconfident", BROKEN),
        ("sleep past its SLA", "endless", TIMEOUT),
        ("wrong schema hash", "other_shape", UNREACHABLE),
    ),
    *_cells("onnx", ("death", "crash", CRASHED), retries=1),
    *_cells("onnx", ("prose", "prose", BROKEN), fallback=True),
    *_cells(
        "device",
        ("prose", "prose", BROKEN),
        ("1 GB of output", "huge", BROKEN),
        ("endless stream", "repeats", BROKEN),
        ("unknown fields", "unknown_field", BROKEN),
        ("NaN", "nan", BROKEN),
        ("deep nesting", "deep", BROKEN),
        ("forged confidence", "overconfident", BROKEN),
        ("sleep past its SLA", "silent", TIMEOUT),
        ("forged error", "forged_error", CRASHED),
    ),
    *_cells("device", ("prose", "prose", BROKEN), fallback=True),
)

CANNOT: Mapping[tuple[str, str], str] = {
    ("python", "endless stream"): "a function returns once; there is no stream to it",
    ("python", "wrong schema hash"): "the manifest's schema is the only one there is",
    (
        "python",
        "memory bomb",
    ): "a function of the server's own process: only code that ships with Podium or that the "
    "operator named in `agent_modules`; any other is refused (tests/unit/agents/test_foreign_code.py)",
    ("python", "fork bomb"): "as the memory bomb",
    (
        "python",
        "sleep past its SLA",
    ): "its answer is dropped in time (tests/unit/agents/test_engines.py), but its "
    "thread comes back only when the function ends; code that is not trusted runs in engine process",
    ("process", "wrong schema hash"): "the manifest's schema is the only one there is",
    ("openai", "memory bomb"): "it would be the endpoint's memory",
    ("openai", "fork bomb"): "they would be the endpoint's processes",
    ("a2a", "memory bomb"): "it would be the other machine's memory",
    ("a2a", "fork bomb"): "they would be the other machine's processes",
    ("mcp_http", "memory bomb"): "it would be the other machine's memory",
    ("mcp_http", "fork bomb"): "they would be the other machine's processes",
    ("onnx", "endless stream"): "a model returns once",
    ("onnx", "memory bomb"): "a model is signed and tried with a memory limit before it serves "
    "(tests/unit/tools/onnx); a run has none of its own",
    ("onnx", "fork bomb"): "a graph starts no processes; its operators are the runtime's own",
    (
        "device",
        "wrong schema hash",
    ): "a device says which agents it has, not their schemas; its answers are checked",
    ("device", "memory bomb"): "it would be the device's memory",
    ("device", "fork bomb"): "they would be the device's processes",
    ("grpc", "endless stream"): "a call has one answer; the connection's limit cuts it off",
    ("grpc", "memory bomb"): "it would be the host's memory",
    ("grpc", "fork bomb"): "they would be the host's processes",
}
"""Cells that cannot exist, and why."""

ROWS = (
    "prose",
    "1 GB of output",
    "endless stream",
    "wrong schema hash",
    "unknown fields",
    "NaN",
    "deep nesting",
    "forged confidence",
    "memory bomb",
    "fork bomb",
    "sleep past its SLA",
)
"""The hostilities that the issue names."""


def columns() -> tuple[str, ...]:
    """The engines of the matrix."""
    return tuple(dict.fromkeys(cell.engine for cell in CELLS))

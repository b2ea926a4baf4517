"""Name the first wrong step of a task: not the one that complained, the one that brought the fault in.

The order of suspicion: a log that is out of order; a plan that was refused; then the first failure that was not
made good, followed back through the data flow (values that its evidence names, arguments that broke its schema,
empty lists, tokens, falling confidence) and through outputs that contradict themselves.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from agents.registry import AgentRegistry
from conductor.history import Attempt, History, read_history
from conductor.silent_faults import SURE_ENOUGH, Sign, empty_list, signs
from conductor.state import moment
from conductor.tracing import culprit
from podium.errors import DataCorrupt
from podium.v1 import event_pb2, status_pb2

_OWN_FAULTS = frozenset(
    {
        "AGENT_TIMEOUT",
        "ANSWER_INCOMPLETE",
        "ANSWER_WITHOUT_SOURCE",
        "DEVICE_LOST",
        "DEVICE_OFFLINE",
        "LOW_CONFIDENCE",
        "OUTPUT_CONTRACT_BROKEN",
    }
)
"""Failures that are about how an agent works, not about the values it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What went wrong first."""

    found: bool
    """False when nothing went wrong."""
    code: str = ""
    """What kind of fault, e.g. "AGENT_TIMEOUT", "CONTRADICTED", "CYCLE", "DATA_CORRUPT"."""
    step: int | None = None
    """Index of the first wrong step; None when the plan or the request as a whole is at fault."""
    uid: str = ""
    agent: str = ""
    agent_version: str = ""
    """Which version of the agent ran; empty when none did."""
    time: datetime | None = None
    """When the wrong step ran, or when the plan was refused."""
    evidence: tuple[str, ...] = ()
    explanation: str = "nothing went wrong"
    reported_by: str = ""
    """The step that reported the fault, where it was another one."""


def diagnose(events: Iterable[event_pb2.Event], registry: AgentRegistry) -> Diagnosis:
    """The first wrong step of a task, from its log.

    Args:
        events: The task's events, in order.
        registry: The agents, for their time limits and gates.
    """
    history = read_history(events)
    if history.broken is not None:
        return _broken_log(history, history.broken)
    failed = _unrecovered(history)
    if failed is not None:
        return _follow(history, failed, registry)
    if history.refusals and not history.state.result:
        return _refused(history)
    if history.state.ended and history.state.status != status_pb2.TASK_STATUS_SUCCEEDED:
        return _ended_without_failure(history, registry)
    for attempt in history.attempts:
        for sign in signs(history, attempt, registry):
            return _by_sign(history, sign, reporter=None)
    recovered = next((attempt for attempt in history.attempts if attempt.error is not None), None)
    if recovered is not None:
        return _follow(history, recovered, registry)
    return Diagnosis(found=False)


def _unrecovered(history: History) -> Attempt | None:
    """The first failed attempt at a step that never succeeded."""
    return next(
        (
            attempt
            for attempt in history.attempts
            if attempt.error is not None and history.done(attempt.uid) is None
        ),
        None,
    )


def _broken_log(history: History, error: DataCorrupt) -> Diagnosis:
    event = history.broken_event
    step = event.header.step if event is not None and event.header.HasField("step") else None
    known = history.state.steps[step] if step is not None and step < len(history.state.steps) else None
    position = event.header.sequence if event is not None else 0
    return Diagnosis(
        found=True,
        code=error.code,
        step=step,
        uid=known.uid if known is not None else "",
        agent=known.acting_agent if known is not None else "",
        time=moment(event.header.time) if event is not None else None,
        evidence=(error.message,),
        explanation=f"the log is broken at event {position}: {error.message}",
    )


def _refused(history: History) -> Diagnosis:
    refusal = history.refusals[0]
    problem = refusal.problems[0]
    step = problem.step if problem.HasField("step") else None
    return Diagnosis(
        found=True,
        code=problem.code,
        step=step,
        agent=refusal.plan.steps[step].tool if step is not None else "",
        time=refusal.time,
        evidence=tuple(f"{item.code}: {item.message}" for item in refusal.problems),
        explanation=f"the plan was refused before anything ran: {problem.message}",
    )


def _ended_without_failure(history: History, registry: AgentRegistry) -> Diagnosis:
    """The task ended without an answer though no attempt failed: time ran out, or the answer was refused."""
    error = history.state.error
    code = error.code if error is not None else ""
    message = error.message if error is not None else "the task ended without an answer"
    if history.state.status == status_pb2.TASK_STATUS_CANCELLED:
        return Diagnosis(found=False, code=code, explanation=f"the task was cancelled: {message}")
    if history.state.status == status_pb2.TASK_STATUS_EXPIRED and history.attempts:
        end = history.state.update_time
        slowest = max(history.attempts, key=lambda attempt: attempt.duration(end))
        seconds = slowest.duration(end).total_seconds()
        return _at(slowest, "SLOW_STEP", [f"{slowest.agent} took {seconds:.1f} s"], "most of the time went there")
    for attempt in history.attempts:
        for sign in signs(history, attempt, registry):
            return _by_sign(history, sign, reporter=None)
    evidence = tuple(error.evidence) if error is not None else ()
    answering = history.attempts[-1] if history.attempts else None
    if answering is None or not code.startswith("ANSWER"):
        return Diagnosis(found=True, code=code, evidence=evidence or (message,), explanation=message)
    return _at(answering, code, [*evidence], message)


def _follow(history: History, failed: Attempt, registry: AgentRegistry) -> Diagnosis:
    """From the failure back to where it began."""
    behind = history.upstream(failed)
    for attempt in behind:
        for sign in signs(history, attempt, registry):
            if sign.code != "SLOW_STEP":
                return _by_sign(history, sign, reporter=failed)
    for judge in (_by_argument, _by_token, _by_emptiness, _by_confidence, _by_value):
        if (found := judge(history, failed, behind)) is not None and found[0] is not failed:
            guilty, why = found
            evidence = [*_evidence(failed), f"step {guilty.index} ({guilty.agent}) {why}"]
            return _at(guilty, _code(failed), evidence, why, reporter=failed)
    message = failed.error.message if failed.error is not None else ""
    return _at(failed, _code(failed), _evidence(failed), message)


def _by_argument(history: History, failed: Attempt, behind: list[Attempt]) -> tuple[Attempt, str] | None:
    """An input that broke the schema came from another step."""
    if _code(failed) != "INPUT_CONTRACT_BROKEN":
        return None
    for line in _evidence(failed):
        for name, (uid, path) in failed.origins.items():
            if line.startswith((f"$.{name}", f"argument {name!r}")) and (before := history.done(uid)) is not None:
                return before, f"produced {path or 'an output'!r}, which {failed.agent} cannot be given: {line}"
    return None


def _by_token(history: History, failed: Attempt, behind: list[Attempt]) -> tuple[Attempt, str] | None:
    """Permission was refused: whoever issued the token is at fault, where there is one."""
    if _code(failed) not in ("CAPABILITY_DENIED", "CAPABILITY_EXPIRED"):
        return None
    for name, (uid, _) in failed.origins.items():
        if "token" in name and (before := history.done(uid)) is not None:
            message = failed.error.message if failed.error is not None else ""
            return before, f"issued the token that was refused: {message}"
    return None


def _by_emptiness(history: History, failed: Attempt, behind: list[Attempt]) -> tuple[Attempt, str] | None:
    """Nothing came in, so nothing could come out."""
    for attempt in behind:
        if name := empty_list(attempt):
            return attempt, f"brought nothing: {name!r} is empty"
    return None


def _by_confidence(history: History, failed: Attempt, behind: list[Attempt]) -> tuple[Attempt, str] | None:
    """An unsure output made the ones after it unsure."""
    if _code(failed) != "LOW_CONFIDENCE":
        return None
    unsure = next((attempt for attempt in behind if attempt.confidence < SURE_ENOUGH), None)
    return None if unsure is None else (unsure, f"was only {unsure.confidence:.2f} sure of its output")


def _by_value(history: History, failed: Attempt, behind: list[Attempt]) -> tuple[Attempt, str] | None:
    """The evidence names a value that another step brought in."""
    if _code(failed) in _OWN_FAULTS:
        return None
    guilty, value = culprit(history, failed, _evidence(failed))
    return None if guilty is failed else (guilty, f"brought in {value}, which {failed.agent} found wrong")


def _by_sign(history: History, sign: Sign, *, reporter: Attempt | None) -> Diagnosis:
    guilty, why = sign.attempt, sign.evidence
    if sign.blames_inputs:
        guilty, value = culprit(history, sign.attempt, sign.evidence.split("; "))
        if guilty is sign.attempt:
            before = history.upstream(sign.attempt)
            guilty = before[-1] if before else sign.attempt
        why = f"brought in {value or 'what'}, which step {sign.attempt.index} ({sign.attempt.agent}) contradicts"
        reporter = sign.attempt
    return _at(guilty, sign.code, [sign.evidence], why, reporter=reporter)


def _at(
    guilty: Attempt, code: str, evidence: list[str], why: str, *, reporter: Attempt | None = None
) -> Diagnosis:
    reported = "" if reporter is None or reporter is guilty else f"step {reporter.index} ({reporter.agent})"
    return Diagnosis(
        found=True,
        code=code,
        step=guilty.index,
        uid=guilty.uid,
        agent=guilty.agent,
        agent_version=guilty.agent_version,
        time=guilty.started,
        evidence=tuple(evidence),
        explanation=f"step {guilty.index} ({guilty.agent}): {why}"
        + (f"; reported by {reported}" if reported else ""),
        reported_by=reported,
    )


def _evidence(attempt: Attempt) -> list[str]:
    return list(_lines(attempt))


def _lines(attempt: Attempt) -> Iterator[str]:
    if attempt.error is not None:
        yield from attempt.error.evidence
        if not attempt.error.evidence:
            yield attempt.error.message


def _code(attempt: Attempt) -> str:
    return attempt.error.code if attempt.error is not None else ""

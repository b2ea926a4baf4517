"""A task's events as lines for a person who watches it live."""

from collections.abc import Mapping

from podium.status import recovery_name
from podium.v1 import event_pb2, plan_pb2


class Progress:
    """Turns events into lines; remembers which agent does which step and when it began.

    A line starts with the event's sequence number (what `podium task watch --after` takes) and the time since the
    first event that was shown.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._first_ns: int | None = None
        self._agents: dict[int, str] = {}
        self._began_ns: dict[int, int] = {}

    def line(self, event: event_pb2.Event) -> str:
        """One event in one line."""
        header = event.header
        now_ns = header.time.ToNanoseconds()
        if self._first_ns is None:
            self._first_ns = now_ns
        after = f"+{(now_ns - self._first_ns) / 1e9:.1f} s"
        kind = event.WhichOneof("payload") or ""
        said = self._step(event, kind, now_ns) if header.HasField("step") else _task(event, kind)
        return f"{header.sequence:>4} {after:>8}  {said}"

    def _step(self, event: event_pb2.Event, kind: str, now_ns: int) -> str:
        index = event.header.step
        if kind == "step_started":
            self._agents[index] = event.step_started.agent
            self._began_ns[index] = now_ns
        name = f"step {index} {self._agents.get(index, '')}".rstrip()
        took = f" after {_seconds(now_ns - self._began_ns[index])}" if index in self._began_ns else ""
        match kind:
            case "step_started":
                attempt = event.step_started.attempt
                return f"{name} begins" + (f" (attempt {attempt})" if attempt > 1 else "")
            case "step_succeeded":
                return f"{name} done{took}, confidence {event.step_succeeded.confidence:.2f}"
            case "step_failed":
                return f"{name} failed{took}: {_failure(event.step_failed)}"
            case "step_skipped":
                return f"{name} left out: {event.step_skipped.reason}"
            case "device_awaited":
                return f"{name} waits for device {event.device_awaited.device_id}"
            case "device_returned":
                return f"device {event.device_returned.device_id} is back for {name}"
            case "review_requested":
                return f"{name} waits for a person: {event.review_requested.reason.message}"
            case "question_asked":
                return f"{name} {_PLAIN[kind]}"
            case _:
                return f"{name}: {_task(event, kind)}"


def plan_line(plan: plan_pb2.Plan) -> str:
    """`parser → retriever ∥ librarian → coder`: what runs after what, and what beside it."""
    groups = (" ∥ ".join(plan.steps[index].tool for index in group.steps) for group in plan.parallel_groups)
    return " → ".join(groups)


_PLAIN: Mapping[str, str] = {
    "task_accepted": "accepted",
    "request_normalized": "request understood",
    "question_asked": "asks a question and waits for its answer",
    "task_succeeded": "succeeded",
}


def _task(event: event_pb2.Event, kind: str) -> str:
    match kind:
        case "plan_adopted":
            adopted = event.plan_adopted
            why = f", {adopted.reason}" if adopted.version > 1 and adopted.reason else ""
            why += "".join(f"; not {entry.planner}: {entry.reason}" for entry in adopted.route if not entry.taken)
            return f"plan {adopted.version} (by {adopted.planner}{why}): {plan_line(adopted.plan)}"
        case "plan_refused":
            return "plan refused: " + "; ".join(problem.message for problem in event.plan_refused.problems)
        case "input_provided":
            return f"answered: {event.input_provided.answer}"
        case "review_requested":
            asked = event.review_requested
            plan = f"; proposed: {plan_line(asked.proposed_plan)}" if asked.HasField("proposed_plan") else ""
            return f"waits for a person: {asked.reason.message}{plan}"
        case "review_resolved":
            given = event.review_resolved
            plan = f" for the plan {plan_line(given.plan)}" if given.HasField("plan") else ""
            return f"a person has decided{plan}"
        case "reward_computed":
            return f"reward {event.reward_computed.reward.final:.3f}"
        case "task_failed":
            return f"failed: {event.task_failed.error.code}: {event.task_failed.error.message}"
        case "task_cancelled":
            return f"cancelled by {event.task_cancelled.caller}: {event.task_cancelled.reason}".rstrip(": ")
        case "task_expired":
            return f"out of time while {event.task_expired.doing}"
        case _:
            # A newer server may say what this program has no words for.
            return _PLAIN.get(kind, kind or "an event of a newer version").replace("_", " ")


def _failure(failed: event_pb2.StepFailed) -> str:
    then = recovery_name(failed.recovery).replace("_", " ")
    instead = f" with {failed.next_agent}" if failed.next_agent else ""
    return f"{failed.error.code}: {failed.error.message}; next: {then}{instead}"


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.1f} s" if nanoseconds >= 1_000_000_000 else f"{nanoseconds / 1e6:.0f} ms"

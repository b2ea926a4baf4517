"""How well a task went, every term with its origin. Pure over the state.

::

    final = 0.4 task_completion + 0.3 data_accuracy + 0.2 process_compliance + 0.1 resource_efficiency

    task_completion     = 0.7 answered + 0.3 steps_complete                          (task layer)
    data_accuracy       = mean over finished steps of
                          0.5 confidence + 0.3 right_first_time + 0.2 sourced        (task layer)
    process_compliance  = mean(plan_verified, plan_kept, checked, unaided)           (process layer)
    resource_efficiency = mean(useful_attempts, useful_time, time_left)              (resource layer)

`right_first_time` is 1 / (1 + data failures of the step); a data failure is an output that broke its schema, was
refused by a validator or missed its confidence gate. `plan_verified` is 1 / (1 + plans refused), `plan_kept` is
1 - replans / 4, `checked` the share of finished steps whose output was checked, `unaided` 1 / (1 + reviews).
`useful_attempts` is finished steps / attempts, `useful_time` the agents' time in attempts that succeeded / their
time in all attempts, `time_left` the share of the time limit that was not used. The four weights are the design's.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from conductor.progress import StepProgress, TaskState
from podium.v1 import result_pb2, status_pb2

WEIGHTS = {
    "task_completion": 0.4,
    "data_accuracy": 0.3,
    "process_compliance": 0.2,
    "resource_efficiency": 0.1,
}
DATA_FAILURES = frozenset(
    {
        "OUTPUT_CONTRACT_BROKEN",
        "VALIDATOR_FAILED",
        "LOW_CONFIDENCE",
        "ANSWER_WITHOUT_SOURCE",
        "ANSWER_INCOMPLETE",
    }
)
"""Codes of failures that are about the data, not about the machinery."""
_MOST_REPLANS = 4


def compute_reward(state: TaskState, *, answered: bool, now: datetime) -> result_pb2.Reward:
    """The reward of a task that is about to end.

    Args:
        state: The task after its last step.
        answered: Whether it ends with an answer.
        now: The moment it ends.
    """
    terms: list[result_pb2.RewardTerm] = []
    layers = {
        "task_completion": _completion(state, answered, terms),
        "data_accuracy": _accuracy(state, terms),
        "process_compliance": _compliance(state, terms),
        "resource_efficiency": _efficiency(state, now, terms),
    }
    final = sum(WEIGHTS[name] * value for name, value in layers.items())
    return result_pb2.Reward(**layers, final=_unit(final), terms=terms)


def _completion(state: TaskState, answered: bool, terms: list[result_pb2.RewardTerm]) -> float:
    done, planned = len(_succeeded(state)), len(state.steps)
    complete = done / planned if planned else 0.0
    _add(terms, "answered", float(answered), "the task ended with an answer" if answered else "there is no answer")
    _add(terms, "steps_complete", complete, f"{done} of {planned} planned steps have an output")
    return _unit(0.7 * answered + 0.3 * complete)


def _accuracy(state: TaskState, terms: list[result_pb2.RewardTerm]) -> float:
    values: list[float] = []
    for step in _succeeded(state):
        wrong = [note.code for note in state.failures if note.uid == step.uid and note.code in DATA_FAILURES]
        first = 1 / (1 + len(wrong))
        sourced = float(bool(step.sources))
        _add(terms, "confidence", step.confidence, f"confidence_score of {step.agent}", step.index)
        _add(
            terms,
            "right_first_time",
            first,
            f"{len(wrong)} outputs were refused before" + (f": {', '.join(wrong)}" if wrong else ""),
            step.index,
        )
        _add(terms, "sourced", sourced, f"the output names {len(step.sources)} sources", step.index)
        values.append(0.5 * step.confidence + 0.3 * first + 0.2 * sourced)
    return _mean(values)


def _compliance(state: TaskState, terms: list[result_pb2.RewardTerm]) -> float:
    done = _succeeded(state)
    checked = sum(bool(step.checks) for step in done) / len(done) if done else 0.0
    reviews = state.reviews_settled + len(state.reviews)
    values = {
        "plan_verified": (1 / (1 + state.plans_refused), f"{state.plans_refused} plans were refused"),
        "plan_kept": (1 - min(state.replans, _MOST_REPLANS) / _MOST_REPLANS, f"{state.replans} new plans"),
        "checked": (checked, f"share of {len(done)} outputs that passed their checks"),
        "unaided": (1 / (1 + reviews), f"{reviews} reviews by a person"),
    }
    for name, (value, origin) in values.items():
        _add(terms, name, value, origin)
    return _mean([value for value, _ in values.values()])


def _efficiency(state: TaskState, now: datetime, terms: list[result_pb2.RewardTerm]) -> float:
    done = _succeeded(state)
    attempts = len(done) + len(state.failures)
    useful = sum((step.useful for step in done), timedelta(0))
    spent = useful + sum((note.duration for note in state.failures), timedelta(0))
    values = [
        _add(
            terms, "useful_attempts", len(done) / attempts if attempts else 0.0, f"{attempts} attempts were made"
        ),
        _add(
            terms,
            "useful_time",
            useful / spent if spent else float(bool(done)),
            f"agents worked {spent.total_seconds():.3f} s, {useful.total_seconds():.3f} s of it to use",
        ),
    ]
    if state.expire_time is not None and state.create_time is not None and state.expire_time > state.create_time:
        limit, taken = state.expire_time - state.create_time, now - state.create_time
        origin = f"{taken.total_seconds():.3f} s of {limit.total_seconds():g} s were used"
        values.append(_add(terms, "time_left", 1 - taken / limit, origin))
    for step in done:
        _add(
            terms,
            "attempts",
            1 / max(step.attempts, 1),
            f"{step.agent} was asked {step.attempts} times",
            step.index,
        )
    return _mean(values)


def _succeeded(state: TaskState) -> list[StepProgress]:
    return [step for step in state.steps if step.status == status_pb2.STEP_STATUS_SUCCEEDED]


def _add(
    terms: list[result_pb2.RewardTerm], name: str, value: float, origin: str, step: int | None = None
) -> float:
    value = _unit(value)
    term = result_pb2.RewardTerm(name=name, value=value, origin=origin)
    if step is not None:
        term.step = step
    terms.append(term)
    return value


def _mean(values: Sequence[float]) -> float:
    return _unit(sum(values) / len(values)) if values else 0.0


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))

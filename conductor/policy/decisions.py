"""The decisions that a plan is made of, one after another: the seam for reinforcement learning.

A decision is a state (the request, what there is to choose from, what became of earlier plans, what was chosen
before), an action (the next tool, or STOP) and the log-probability that the model gave it. A trainer computes
that again with its own weights (`conductor.training.selector.sequence_log_probabilities`). `podium plan --batch
--decisions` writes them beside the plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conductor.policy.selecting import Extra, Hypothesis
from conductor.policy.selecting_index import ToolIndex

STOP = None
"""The action that ends a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One choice of the model."""

    request: str
    """The text that was read."""
    tools: tuple[str, ...]
    """Keys (`ToolCard.key`) of everything that could be chosen; states of one request share the tuple."""
    feedback: tuple[tuple[str, str], ...]
    """(key, verdict) of the steps of earlier plans."""
    chosen: tuple[str, ...]
    """Keys of the tools chosen before this decision, in order."""
    action: str | None
    """Key of the tool that was chosen, or STOP."""
    log_probability: float
    """Natural logarithm, at most 0."""

    def to_json(self) -> dict[str, Any]:
        """What sets the decision apart from the others of its request; `decisions_row` has the rest."""
        return {"chosen": list(self.chosen), "action": self.action, "log_probability": self.log_probability}


def decisions_of(request: str, index: ToolIndex, hypothesis: Hypothesis, extra: Extra) -> tuple[Decision, ...]:
    """The decisions that made `hypothesis`, STOP at the end.

    Args:
        request: The text that was read.
        index: What there was to choose from.
        hypothesis: What was chosen.
        extra: What the model was told besides.
    """
    keys = tuple(card.key for card in index.cards)
    actions: Sequence[str | None] = (*(keys[at] for at in hypothesis.tools), STOP)
    told = tuple((keys[item.tool], item.verdict) for item in extra.feedback)
    return tuple(
        Decision(
            request=request,
            tools=keys,
            feedback=told,
            chosen=tuple(keys[place] for place in hypothesis.tools[:at]),
            action=action,
            log_probability=log_probability,
        )
        for at, (action, log_probability) in enumerate(
            zip(actions, hypothesis.step_log_probabilities, strict=True)
        )
    )


def decisions_row(decisions: Sequence[Decision], *, plan: str | int | float) -> dict[str, Any]:
    """The decisions of one plan as a row of a file.

    What could be chosen is left out: the tools' keys are enough to find them where the request came from.

    Args:
        decisions: As `decisions_of` gives them; never empty.
        plan: Id of the request in its batch.
    """
    first = decisions[0]
    return {
        "id": plan,
        "request": first.request,
        "feedback": [{"tool": tool, "verdict": verdict} for tool, verdict in first.feedback],
        "decisions": [decision.to_json() for decision in decisions],
    }

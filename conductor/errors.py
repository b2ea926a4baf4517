"""What can go wrong while a task is planned, run and judged, beyond what agents themselves report."""

from grpc import StatusCode

from podium.errors import AgentError, PodiumError


class NoPlan(PodiumError):
    """No planner has a plan for the request."""

    code = "NO_PLAN"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Say it in other words, or add a plan rule for requests of this kind."


class PlanUnsure(PodiumError):
    """No planner is sure enough of its plan to run it; a person is asked."""

    code = "PLAN_UNSURE"
    status = StatusCode.FAILED_PRECONDITION
    advice = (
        "Look at the proposed plan (`podium review list`), then accept it, give another one, or reject the task."
    )


class AnchorDrift(AgentError):
    """What an agent was to be given has drifted away from what was asked."""

    code = "ANCHOR_DRIFT"
    advice = "Compare the step's input with the request; mend the plan rule or the agent before it."


class AnswerWithoutSource(AgentError):
    """An answer, or a claim in it, does not say what it rests on."""

    code = "ANSWER_WITHOUT_SOURCE"
    retryable = True
    advice = "Let the agent that writes the answer end every claim with [Source: ID]."


class AnswerIncomplete(AgentError):
    """An answer does not keep a constraint of the request."""

    code = "ANSWER_INCOMPLETE"
    retryable = True
    advice = "Let the agent that writes the answer meet the constraints listed."


class ReviewRejected(PodiumError):
    """The person who reviewed a task ended it."""

    code = "REVIEW_REJECTED"
    status = StatusCode.ABORTED
    advice = "Read the reviewer's note; send the request again once its cause is removed."


class TooManyQuestions(PodiumError):
    """The caller was asked several times and the request is still not understood."""

    code = "TOO_MANY_QUESTIONS"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Send a new request that names what is wanted in words of the data."

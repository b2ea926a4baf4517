"""`ReviewService`: what waits for a person, and what the person decided."""

from typing import Any

import grpc

from agents.canonical import canonical_json
from agents.registry import AgentRegistry
from cloud.auth.principal import current_principal
from cloud.services.fields import checked_json, checked_text
from cloud.services.task import MAX_PAGE, MAX_REASON_CHARACTERS, checked_page_size
from conductor.bus import EventBus
from conductor.desk import TaskDesk
from conductor.journal import timestamp_of
from conductor.plan import Plan
from conductor.progress import OpenReview, TaskState
from conductor.state import fold
from conductor.trimming import trimmed
from conductor.versions import agent_that_did
from podium.errors import InvalidRequest
from podium.v1 import event_pb2, review_pb2, review_pb2_grpc, status_pb2

MAX_PLAN_STEPS = 200
"""Of a plan that a person gives, before anything else is looked at; verification allows fewer."""

Context = grpc.aio.ServicerContext[Any, Any]


class ReviewService(review_pb2_grpc.ReviewServiceServicer):
    """See `podium/v1/review.proto`."""

    def __init__(self, bus: EventBus, registry: AgentRegistry, desk: TaskDesk) -> None:
        self._bus = bus
        self._registry = registry
        self._desk = desk

    async def ListReviews(  # noqa: N802 - gRPC's name
        self, request: review_pb2.ListReviewsRequest, context: Context
    ) -> review_pb2.ListReviewsResponse:
        """The open cases, oldest first."""
        size = checked_page_size(request.page_size)
        waiting: list[str] = []
        while page := await self._bus.rows(
            statuses=[status_pb2.TASK_STATUS_WAITING_REVIEW], limit=MAX_PAGE, before=waiting[-1] if waiting else ""
        ):
            waiting.extend(row.task_id for row in page)
        reviews: list[review_pb2.Review] = []
        for task_id in reversed(waiting):
            state = fold(await self._bus.read(task_id))
            reviews.extend(self._review(state, review) for review in state.reviews)
            if len(reviews) >= size:
                break
        return review_pb2.ListReviewsResponse(reviews=reviews[:size])

    async def ResolveReview(  # noqa: N802 - gRPC's name
        self, request: review_pb2.ResolveReviewRequest, context: Context
    ) -> review_pb2.ResolveReviewResponse:
        """Settle a task's oldest open case; an output must keep the agent's contract, and a plan is verified."""
        if request.output_json:
            checked_json(request.output_json, "output_json")
        resolved = event_pb2.ReviewResolved(
            verdict=request.verdict,
            output_json=request.output_json,
            reviewer=current_principal().caller,
            note=checked_text(request.note, "note", max_characters=MAX_REASON_CHARACTERS),
        )
        if request.plan_json:
            plan, answer = _checked_plan(request.plan_json)
            resolved.plan.CopyFrom(plan.to_proto())
            resolved.answer_step = answer
        state = await self._desk.resolve_review(request.task_id, resolved)
        return review_pb2.ResolveReviewResponse(status=state.status)

    def _review(self, state: TaskState, review: OpenReview) -> review_pb2.Review:
        message = review_pb2.Review(
            task_id=state.task_id, text=state.text, reason=review.reason, since=timestamp_of(review.since)
        )
        if review.proposed is not None:
            proposed = {**review.proposed.plan.to_json(), "answer_step": review.proposed.answer}
            message.proposed_plan_json = canonical_json(proposed)
            message.request_json = canonical_json(
                trimmed(state.request.value) if state.request is not None else {}
            )
            message.route.extend(state.route)
        if review.step is not None:
            step = state.steps[review.step]
            message.step = review.step
            message.input_json = step.input.data if step.input is not None else b""
            agent = agent_that_did(self._registry, step)
            message.output_schema_json = canonical_json(agent.spec.output_schema) if agent is not None else b""
        return message


def _checked_plan(data: bytes) -> tuple[Plan, int]:
    """A plan in its JSON form, and the index of its answer step.

    Raises:
        InvalidRequest, PlanFormatError: it is none.
    """
    value = checked_json(data, "plan_json")
    steps = value.get("steps") if isinstance(value, dict) else None
    if not isinstance(steps, list) or len(steps) > MAX_PLAN_STEPS:
        raise InvalidRequest(
            f'plan_json is no plan: an object with "steps", at most {MAX_PLAN_STEPS} of them, is needed',
            field="plan_json",
        )
    answer = value.get("answer_step", len(steps) - 1)
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(steps):
        raise InvalidRequest(f"answer_step must be the index of one of {len(steps)} steps", field="plan_json")
    return Plan.from_json(value), answer

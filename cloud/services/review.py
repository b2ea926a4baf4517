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
from conductor.progress import OpenReview, TaskState
from conductor.state import fold
from conductor.versions import agent_that_did
from podium.v1 import event_pb2, review_pb2, review_pb2_grpc, status_pb2

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
        """Settle a task's oldest open case; a corrected output must keep the agent's contract."""
        if request.output_json:
            checked_json(request.output_json, "output_json")
        resolved = event_pb2.ReviewResolved(
            verdict=request.verdict,
            output_json=request.output_json,
            reviewer=current_principal().caller,
            note=checked_text(request.note, "note", max_characters=MAX_REASON_CHARACTERS),
        )
        state = await self._desk.resolve_review(request.task_id, resolved)
        return review_pb2.ResolveReviewResponse(status=state.status)

    def _review(self, state: TaskState, review: OpenReview) -> review_pb2.Review:
        message = review_pb2.Review(
            task_id=state.task_id, text=state.text, reason=review.reason, since=timestamp_of(review.since)
        )
        if review.step is not None:
            step = state.steps[review.step]
            message.step = review.step
            message.input_json = step.input.data if step.input is not None else b""
            agent = agent_that_did(self._registry, step)
            message.output_schema_json = canonical_json(agent.spec.output_schema) if agent is not None else b""
        return message

"""The asyncio client, method for method the twin of `podium.client.blocking`."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from podium.client.blobs import AsyncBlobCalls
from podium.client.messages import (
    MAX_BREAKS,
    Countdown,
    open_question_id,
    submit_request,
    token_request,
    typed_errors,
)
from podium.client.registry import AsyncRegistryCalls
from podium.errors import ServerUnavailable
from podium.link import DEFAULT_DEADLINE, Address, async_channel
from podium.status import ENDED, WAITS_FOR_PERSON, Priority, ReviewVerdict, TaskStatus
from podium.v1 import (
    blob_pb2,
    blob_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    registry_pb2_grpc,
    review_pb2,
    review_pb2_grpc,
    status_pb2,
    task_pb2,
    task_pb2_grpc,
)


class AsyncClient(AsyncRegistryCalls, AsyncBlobCalls):
    """Speaks to one server; every call has a deadline and raises errors of `podium.errors`.

    Belongs to the event loop it was made in. Reads and submissions are retried by gRPC while the server is
    unavailable.
    """

    def __init__(self, address: Address, *, deadline: timedelta = DEFAULT_DEADLINE, patient: bool = False) -> None:
        """Connects at the first call.

        Args:
            address: the server.
            deadline: of a call that neither moves files nor waits for a task.
            patient: for machines behind slow lines; see `podium.link.channel_options`.
        """
        self._address = address
        self._channel = async_channel(address, patient=patient)
        self._deadline_s = deadline.total_seconds()
        self._tasks = task_pb2_grpc.TaskServiceStub(self._channel)
        self._blobs = blob_pb2_grpc.BlobServiceStub(self._channel)
        self._registry = registry_pb2_grpc.RegistryServiceStub(self._channel)
        self._reviews = review_pb2_grpc.ReviewServiceStub(self._channel)
        self._identities = identity_pb2_grpc.IdentityServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel; running calls end with ServerUnavailable."""
        await self._channel.close()

    async def submit(
        self,
        text: str,
        *,
        request_id: str = "",
        as_of: datetime | None = None,
        attachments: Sequence[blob_pb2.BlobRef] = (),
        time_limit: timedelta | None = None,
        priority: Priority = status_pb2.PRIORITY_UNSPECIFIED,
        labels: Mapping[str, str] | None = None,
    ) -> task_pb2.Task:
        """Hand in a task; it is on disk when this returns. The same `request_id` returns the first task."""
        request = submit_request(
            text,
            request_id=request_id,
            as_of=as_of,
            attachments=attachments,
            time_limit=time_limit,
            priority=priority,
            labels=labels,
        )
        with typed_errors(self._address):
            return (await self._tasks.SubmitTask(request, timeout=self._deadline_s)).task

    async def get(self, task_id: str) -> task_pb2.Task:
        """Read one task."""
        with typed_errors(self._address):
            return (
                await self._tasks.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=self._deadline_s)
            ).task

    async def list(
        self, *, statuses: Sequence[TaskStatus] = (), page_size: int = 50, page_token: str = ""
    ) -> task_pb2.ListTasksResponse:
        """One page of tasks, newest first."""
        request = task_pb2.ListTasksRequest(statuses=statuses, page_size=page_size, page_token=page_token)
        with typed_errors(self._address):
            return await self._tasks.ListTasks(request, timeout=self._deadline_s)

    async def cancel(self, task_id: str, reason: str = "") -> task_pb2.Task:
        """End a task early; one that has ended is returned unchanged."""
        request = task_pb2.CancelTaskRequest(task_id=task_id, reason=reason)
        with typed_errors(self._address):
            return (await self._tasks.CancelTask(request, timeout=self._deadline_s)).task

    async def answer(self, task_id: str, answer: str, *, question_id: str = "") -> task_pb2.Task:
        """Answer a task's question; without `question_id`, the one that is open now.

        Raises:
            Conflict: the task asks nothing now, or this question was answered otherwise.
        """
        if not question_id:
            question_id = open_question_id(await self.get(task_id))
        request = task_pb2.ProvideInputRequest(task_id=task_id, question_id=question_id, answer=answer)
        with typed_errors(self._address):
            return (await self._tasks.ProvideInput(request, timeout=self._deadline_s)).task

    async def watch(
        self, task_id: str, *, after_sequence: int = 0, time_limit: timedelta | None = None
    ) -> AsyncGenerator[task_pb2.WatchTaskResponse, None]:
        """Events from `after_sequence` on until the task has ended; goes on by itself over a broken connection.

        Raises:
            ServerUnavailable: no server is there, or it went away and did not come back within the deadline,
                or the connection broke `MAX_BREAKS` times without an event in between.
            TimeLimitExceeded: `time_limit` (default: none) ran out, reconnects included.
        """
        clock = Countdown(time_limit)
        failures = 0
        connected = False
        while True:
            request = task_pb2.WatchTaskRequest(task_id=task_id, after_sequence=after_sequence)
            try:
                with typed_errors(self._address):
                    async for response in self._tasks.WatchTask(request, timeout=clock.left_s()):
                        connected, failures = True, 0
                        after_sequence = response.event.header.sequence
                        yield response
                return
            except ServerUnavailable:
                failures += 1
                if not connected or failures >= MAX_BREAKS or not await self._is_back(clock.left_s()):
                    raise

    async def _is_back(self, left_s: float | None) -> bool:
        """Wait for a server that was there before."""
        patience_s = self._deadline_s if left_s is None else min(left_s, self._deadline_s)
        try:
            async with asyncio.timeout(patience_s):
                await self._channel.channel_ready()
        except TimeoutError:
            return False
        return True

    async def wait(
        self, task_id: str, *, time_limit: timedelta | None = None, until_asked: bool = True
    ) -> task_pb2.Task:
        """Follow a task until it has ended or, with `until_asked`, until it waits for a person."""
        # Closed at once: a stream that nobody reads any more would stay open until the generator is collected.
        async with aclosing(self.watch(task_id, time_limit=time_limit)) as responses:
            async for response in responses:
                if response.status in ENDED or (until_asked and response.status in WAITS_FOR_PERSON):
                    task = await self.get(task_id)
                    # The log is replayed from its start: an old question may have been answered since.
                    if task.status in ENDED or (until_asked and task.status in WAITS_FOR_PERSON):
                        return task
        return await self.get(task_id)

    async def reviews(self) -> Sequence[review_pb2.Review]:
        """What waits for a person, oldest first."""
        with typed_errors(self._address):
            return (
                await self._reviews.ListReviews(review_pb2.ListReviewsRequest(), timeout=self._deadline_s)
            ).reviews

    async def resolve_review(
        self,
        task_id: str,
        verdict: ReviewVerdict,
        *,
        output_json: bytes = b"",
        plan_json: bytes = b"",
        note: str = "",
    ) -> TaskStatus:
        """Settle what waits for a person and return the task's status then.

        Args:
            task_id: The task.
            verdict: How.
            output_json: The step's output, where a step waits.
            plan_json: The plan to follow, where a plan is asked for and the proposed one is not accepted.
            note: Why, for the record.
        """
        request = review_pb2.ResolveReviewRequest(
            task_id=task_id, verdict=verdict, output_json=output_json, plan_json=plan_json, note=note
        )
        with typed_errors(self._address):
            return (await self._reviews.ResolveReview(request, timeout=self._deadline_s)).status

    async def issue_token(
        self, subject: str, roles: Sequence[str], *, lifetime: timedelta | None = None, tenant: str = ""
    ) -> identity_pb2.IssueCallerTokenResponse:
        """A bearer token for a person or an application; needs the role administrator."""
        request = token_request(subject, roles, lifetime, tenant)
        with typed_errors(self._address):
            return await self._identities.IssueCallerToken(request, timeout=self._deadline_s)

    async def revoke_tokens(self, subject: str, *, reason: str = "") -> identity_pb2.RevokeCallerTokensResponse:
        """Refuse what somebody was issued up to now and end their calls; needs the role administrator."""
        request = identity_pb2.RevokeCallerTokensRequest(subject=subject, reason=reason)
        with typed_errors(self._address):
            return await self._identities.RevokeCallerTokens(request, timeout=self._deadline_s)

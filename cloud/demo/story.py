"""Runs the demo's questions and pages through a cloud and a device, and checks every answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cloud.commands.presenting import task_json
from cloud.commands.progress import Progress
from cloud.commands.task import events_of
from cloud.demo import script
from cloud.demo.processes import WatchingDevice, running_cloud, running_device
from conductor.errors import PlanUnsure
from conductor.timeline import Span, timeline
from podium.client import Client
from podium.status import ENDED, WAITS_FOR_PERSON
from podium.v1 import status_pb2, task_pb2

TASK_LIMIT = timedelta(seconds=60)
PAGE_LIMIT_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question or page of the demo, answered."""

    name: str
    task: task_pb2.Task
    wrong: tuple[str, ...]
    """What is wrong with the answer; empty when it is right."""
    spans: tuple[Span, ...]
    """What ran when."""

    def to_json(self) -> dict[str, Any]:
        """The outcome as `podium demo --json` prints it."""
        whole = task_json(self.task)
        keys = ("request", "status", "plan", "planner", "route", "answer", "sources", "latency_ms", "reward")
        return {"name": self.name} | {key: whole[key] for key in keys} | {"wrong": list(self.wrong)}


class Story:
    """The demo, told one outcome at a time; `say` gets a line whenever something happens."""

    def __init__(self, data: Path, say: Callable[[str], None]) -> None:
        self._data = data
        self._say = say

    def outcomes(self) -> Iterator[Outcome]:
        """Start cloud and device, ask, and yield each outcome as it comes.

        Raises:
            ServerUnavailable, TimeLimitExceeded: a process did not start or did not answer.
        """
        with ExitStack() as stack:
            self._say("starting the cloud (TLS) and an enrolled device that watches a folder")
            cloud = stack.enter_context(running_cloud(self._data))
            log = self._data / "device.log"
            device = stack.enter_context(running_device(cloud, self._data / "scanner", log))
            client = stack.enter_context(Client(cloud.address))
            self._say(f"the cloud listens on {cloud.address.target}")
            # The pages are read on the device while the questions are answered in the cloud.
            for page in script.PAGES:
                device.scan(page.file)
            yield self._ask(client, "sales_zh", script.CHINESE)
            yield self._ask(client, "sales_en", script.ENGLISH)
            yield self._ask(client, "sales_clarified", script.UNCLEAR, answer=script.CLARIFICATION)
            if script.trained_planner_ships():
                yield self._ask_new_agent(client)
            for page in script.PAGES:
                yield self._check_page(client, device, page)

    def _ask(self, client: Client, name: str, text: str, *, answer: str = "") -> Outcome:
        self._say(f"asking: {text}")
        task_id = client.submit(text, as_of=script.AS_OF, labels={"demo": name}).task_id
        progress = Progress()
        task = self._follow(client, task_id, progress)
        wrong = []
        if answer:
            if task.status != status_pb2.TASK_STATUS_WAITING_INPUT:
                wrong.append("it did not ask back")
            else:
                self._say(f"it asks: {task.question.text}")
                self._say(f"answering: {answer}")
                after = client.answer(task_id, answer).last_sequence
                task = self._follow(client, task_id, progress, after_sequence=after)
        wrong += script.wrong_sales_answer(task, self._data)
        return self._outcome(client, name, task, wrong)

    def _ask_new_agent(self, client: Client) -> Outcome:
        """Register an agent that no rule knows, and ask something that only the trained planner can plan."""
        response = client.register_agent(script.NEW_AGENT.read_text(encoding="utf-8"))
        self._say(f"registered the agent {response.agent.name}, of which no rule speaks")
        self._say(f"asking: {script.READING}")
        task_id = client.submit(script.READING, as_of=script.AS_OF, labels={"demo": "new_agent"}).task_id
        progress = Progress()
        task = self._follow(client, task_id, progress)
        if task.status == status_pb2.TASK_STATUS_WAITING_REVIEW and task.error.code == PlanUnsure.code:
            self._say("a person looks at the proposed plan and accepts it")
            client.resolve_review(task_id, status_pb2.REVIEW_VERDICT_ACCEPTED, note="accepted in the demo")
            task = self._follow(client, task_id, progress, after_sequence=task.last_sequence)
        return self._outcome(client, "new_agent", task, script.wrong_reading_answer(task))

    def _check_page(self, client: Client, device: WatchingDevice, page: script.Page) -> Outcome:
        self._say(f"waiting for the device's answer about {page.file.name}")
        started_s = time.monotonic()
        answer = device.answer(page.file.name, limit_s=PAGE_LIMIT_S)
        self._say(f"{page.file.name} answered after {time.monotonic() - started_s:.1f} s more")
        wrong = script.wrong_invoice_answer(page, answer)
        return self._outcome(client, f"invoice_{page.file.stem}", client.get(answer["task_id"]), wrong)

    def _follow(
        self, client: Client, task_id: str, progress: Progress, *, after_sequence: int = 0
    ) -> task_pb2.Task:
        for response in client.watch(task_id, after_sequence=after_sequence, time_limit=TASK_LIMIT):
            self._say(progress.line(response.event))
            if response.status in ENDED | WAITS_FOR_PERSON:
                break
        return client.get(task_id)

    def _outcome(self, client: Client, name: str, task: task_pb2.Task, wrong: list[str]) -> Outcome:
        spans = timeline(events_of(client, task.task_id))
        return Outcome(name=name, task=task, wrong=tuple(wrong), spans=spans)

"""What the demo asks, and what a right answer is.

The sales questions are checked against SQL written by hand here, apart from everything that answers them; the
invoices against the truth that was drawn into them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from podium.status import task_status_name
from podium.v1 import status_pb2, task_pb2

AS_OF = datetime(2026, 10, 15, 9, tzinfo=UTC)
"""The moment the questions refer to: the sample data ends with September 2026."""
SAMPLES = Path(__file__).parent.parent.parent / "agents" / "packs" / "invoice" / "samples"

CHINESE = "对比华东和华南区域上季度销售额，找出下降超15%的城市"
ENGLISH = (
    "Compare last quarter's sales of the East China and South China regions and find the cities that fell by more "
    "than 15%"
)
UNCLEAR = "Compare last quarter's sales of the Antarctica region and find the cities that fell by more than 15%"
CLARIFICATION = "East China and South China"
NEW_AGENT = Path(__file__).with_name("reading_time.yaml")
"""Registered while the cloud runs; no rule and no vocabulary speaks of it."""
READING = "Tell me how long it takes to read this text aloud."
REGIONS = ["east_china", "south_china"]

_FALLEN_CITIES = """
with sales as (
    select city_code,
           sum(quantity * unit_price * (1 - discount)) filter (ordered_on >= date '2026-07-01') as present,
           sum(quantity * unit_price * (1 - discount)) filter (ordered_on < date '2026-07-01') as past
    from order_line
    where ordered_on >= date '2026-04-01' and ordered_on < date '2026-10-01'
    group by city_code
)
select city_code from sales join city using (city_code)
where list_contains($regions, region_code) and present < past * 0.85
order by city_code
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page for the scanner and the faults that were drawn into it."""

    file: Path
    faults: Mapping[str, str]
    """Finding code to the field it is about."""

    def truth(self) -> dict[str, Any]:
        """What is printed on the page."""
        content: dict[str, Any] = json.loads(self.file.with_suffix(".truth.json").read_text(encoding="utf-8"))
        return content


PAGES = (
    Page(file=SAMPLES / "clean.png", faults={}),
    Page(
        file=SAMPLES / "faulty.jpg",
        faults={
            "tariff_code_length": "hs_codes",
            "iban_check_digits": "iban",
            "sanctions_near_match": "supplier",
        },
    ),
)


def wrong_sales_answer(task: task_pb2.Task, data: Path) -> list[str]:
    """What is wrong with the answer to a sales question; empty when it is right."""
    if task.status != status_pb2.TASK_STATUS_SUCCEEDED:
        return [f"the task is {task_status_name(task.status)}: {task.error.message or task.question.text}"]
    expected = fallen_cities(data)
    rows = json.loads(task.result.fields_json).get("rows", [])
    answered = sorted(row.get("city", "?") for row in rows)
    wrong = [] if answered == expected else [f"cities {answered}, an independent query says {expected}"]
    if not task.result.sources or "[Source:" not in task.result.answer_markdown:
        wrong.append("the answer names no source")
    return wrong


def wrong_reading_answer(task: task_pb2.Task) -> list[str]:
    """What is wrong with the answer of the agent that only the trained planner can plan with; empty when right."""
    if task.status != status_pb2.TASK_STATUS_SUCCEEDED:
        return [f"the task is {task_status_name(task.status)}: {task.error.message or task.question.text}"]
    words, expected = json.loads(task.result.fields_json).get("words"), len(READING.split())
    wrong = [] if words == expected else [f"{words} words, there are {expected}"]
    by_policy = [entry for entry in task.route if entry.planner == "policy" and entry.HasField("confidence")]
    if not by_policy or task.planner not in ("policy", "person"):
        wrong.append(f"it was planned by {task.planner or 'nobody'}")
    return wrong


def trained_planner_ships() -> bool:
    """Whether this build has a trained planner to show."""
    from conductor.policy.model import COMMITTED
    from tools.models.pinned import committed_models

    return any(model.name == COMMITTED for model in committed_models())


def wrong_invoice_answer(page: Page, answer: Mapping[str, Any]) -> list[str]:
    """What is wrong with the check of a page; empty when it is right."""
    truth = page.truth()
    wrong = []
    for name in ("number", "date", "currency", "total"):
        value = answer["fields"].get(name, {}).get("value")
        if value != truth["fields"][name]:
            wrong.append(f"{name} is {value!r}, the page says {truth['fields'][name]!r}")
    found = {finding["code"]: finding for finding in answer["findings"]}
    wrong += [f"{code} was not found" for code in page.faults if code not in found]
    wrong += [f"{code} was found, and there is no such fault" for code in found if code not in page.faults]
    for code, field in page.faults.items():
        boxes = truth["boxes"][field]
        if code in found and not any(_touch(found[code]["box"], box) for box in boxes):
            wrong.append(f"{code} names box {found[code]['box']}, the fault is at one of {boxes}")
    return wrong


def fallen_cities(data: Path) -> list[str]:
    """Cities of both regions whose sales fell by more than 15 %, by hand-written SQL."""
    (database,) = (data / "datasets").glob("sales-*.duckdb")
    with duckdb.connect(str(database), read_only=True) as connection:
        return [row[0] for row in connection.execute(_FALLEN_CITIES, {"regions": REGIONS}).fetchall()]


def _touch(first: Sequence[int] | None, second: Sequence[int]) -> bool:
    if first is None:
        return False
    return (
        first[0] < second[0] + second[2]
        and second[0] < first[0] + first[2]
        and first[1] < second[1] + second[3]
        and second[1] < first[1] + first[3]
    )

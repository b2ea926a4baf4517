"""The security agent permits, the executor demands, the validator contradicts, the logger writes once."""

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.audit import AuditEntry, AuditReceipt
from agents.capability import CapabilityAuthority
from agents.dataset import Dataset
from agents.invocation import AgentContext, Caller, Resources
from agents.specialists.citations import uncited_claims
from agents.specialists.coder import code
from agents.specialists.executor import execute
from agents.specialists.logger import log
from agents.specialists.question import Question
from agents.specialists.security import secure
from agents.specialists.validator import validate
from podium.errors import CapabilityDenied, InputContractBroken, InternalError, NotFound
from tests.unit.agents.specs import NOW, context
from tools.sql.errors import SqlRefused
from tools.sql.intent import Interval
from tools.sql.loading import TableSource, write_database
from tools.sql.model import load_model

MODEL = """
name: shop
description: {zh: 店, en: A shop}
grain: sale
time_column: sale.sold_on
tables: {sale: One sale}
measures:
  revenue: {labels: {zh: 收入, en: Revenue}, aggregate: sum, expression: amount, scale: 2, unit: CNY}
dimensions:
  town: {column: sale.town, labels: {zh: 镇, en: Town}, values: [{value: a, labels: {zh: 甲, en: A}}]}
"""
INTENT: dict[str, Any] = {
    "kind": "values",
    "measures": ["revenue"],
    "dimension": "town",
    "filters": [],
    "interval": {"start": "2026-01-01", "end": "2026-02-01"},
    "comparison": None,
    "change": None,
    "granularity": None,
    "descending": True,
    "limit": None,
}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Shop:
    """A tiny dataset with everything the agents need."""

    def __init__(self, folder: Path) -> None:
        (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
        rows = [(1, "2026-01-05", "a", "10.50"), (2, "2026-01-06", "b", "7.25"), (3, "2026-02-01", "a", "1.00")]
        columns = [("id", "INTEGER"), ("sold_on", "DATE"), ("town", "VARCHAR"), ("amount", "DECIMAL(10,2)")]
        write_database(folder / "shop.duckdb", [TableSource(name="sale", columns=columns, key=["id"], rows=rows)])
        self.clock = Clock()
        self.dataset = Dataset(
            name="shop",
            semantic_yaml=folder / "model.yaml",
            database=lambda: folder / "shop.duckdb",
            covered=Interval.model_validate({"start": "2026-01-01", "end": "2026-03-01"}),
            reader_roles=frozenset({"analyst"}),
        )
        authority = CapabilityAuthority(b"k" * 32, clock=self.clock)
        self.context = context(
            caller=Caller(name="ann", roles=frozenset({"analyst"})),
            resources=Resources({"dataset.shop": self.dataset, CapabilityAuthority.RESOURCE: authority}),
        )

    def statements(self) -> list[dict[str, Any]]:
        inputs = {"dataset": "shop", "intent": INTENT, "values": {"town": ["a", "b"]}}
        return code(inputs, self.context)["statements"]

    def secured(self) -> dict[str, Any]:
        return secure({"dataset": "shop", "statements": self.statements()}, self.context)

    def run(self, secured: Mapping[str, Any], by: AgentContext | None = None) -> dict[str, Any]:
        inputs = {"dataset": "shop", "statements": secured["statements"], "tokens": secured["tokens"]}
        return execute(inputs, by or self.context)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_what_is_permitted_runs_and_names_its_data(shop: Shop) -> None:
    found = shop.run(shop.secured())
    [result] = found["results"]
    assert result["rows"] == [["a", "10.50"], ["b", "7.25"]]
    assert found["sources"][0]["sha256"] == result["sha256"]
    assert not found["empty"]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE sale",
        "SELECT 1; DROP TABLE sale",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM duckdb_settings()",
        "DELETE FROM sale",
        "COPY sale TO '/tmp/x'",
        "ATTACH '/tmp/x'",
        "SELECT secret FROM other",
    ],
)
def test_security_permits_nothing_but_one_select_over_known_tables(shop: Shop, sql: str) -> None:
    [statement] = shop.statements()
    with pytest.raises(SqlRefused):
        secure({"dataset": "shop", "statements": [statement, {**statement, "sql": sql}]}, shop.context)


def test_a_caller_without_the_role_gets_no_token(shop: Shop) -> None:
    stranger = replace(shop.context, caller=Caller(name="bob", roles=frozenset({"caller"})))
    with pytest.raises(CapabilityDenied, match="bob may not read dataset shop"):
        secure({"dataset": "shop", "statements": shop.statements()}, stranger)


def test_nothing_runs_without_its_own_token(shop: Shop) -> None:
    secured = shop.secured()
    changed_sql, changed_value = copy.deepcopy(secured), copy.deepcopy(secured)
    changed_sql["statements"][0]["sql"] += " "
    changed_value["statements"][0]["params"]["start"]["date"] = "2020-01-01"
    for tampered in (changed_sql, changed_value, {**secured, "tokens": [""]}, {**secured, "tokens": []}):
        with pytest.raises(CapabilityDenied):
            shop.run(tampered)
    for other in (replace(shop.context, task_id="t-2"), replace(shop.context, caller=Caller(name="bob"))):
        with pytest.raises(CapabilityDenied, match="for another"):
            shop.run(secured, other)


def test_a_token_ends_with_its_time_not_with_the_time_of_the_task(shop: Shop) -> None:
    secured = shop.secured()
    assert shop.run(secured, replace(shop.context, now=datetime(2030, 1, 1, tzinfo=UTC)))
    shop.clock.now += timedelta(minutes=15)
    with pytest.raises(CapabilityDenied, match="expired"):
        shop.run(secured)


def test_no_record_is_not_an_answer_of_zero(shop: Shop) -> None:
    for interval, empty in (({"start": "2025-01-01", "end": "2025-02-01"}, True), (INTENT["interval"], False)):
        for dimension in ("town", None):
            intent = {**INTENT, "interval": interval, "dimension": dimension}
            statements = code({"dataset": "shop", "intent": intent, "values": {}}, shop.context)["statements"]
            secured = secure({"dataset": "shop", "statements": statements}, shop.context)
            assert shop.run(secured)["empty"] is empty


def test_the_validator_agrees_with_the_truth_and_names_every_lie(shop: Shop) -> None:
    results = shop.run(shop.secured())["results"]
    inputs = {"dataset": "shop", "intent": INTENT, "results": results}
    verdict = validate(inputs, shop.context)
    assert verdict["agrees"]
    assert (verdict["cells_checked"], verdict["rows_read"]) == (4, 2)
    lies = copy.deepcopy(results)
    lies[0]["rows"][1][1] = "7.26"
    verdict = validate({**inputs, "results": lies}, shop.context)
    assert not verdict["agrees"]
    assert verdict["confidence_score"] == 0.0
    assert verdict["contradictions"] == [{"purpose": "members", "evidence": "row 2, revenue: 7.26, expected 7.25"}]
    shorter = [{**results[0], "rows": results[0]["rows"][:1]}]
    assert not validate({**inputs, "results": shorter}, shop.context)["agrees"]


def test_results_of_another_form_are_refused(shop: Shop) -> None:
    [result] = shop.run(shop.secured())["results"]
    for broken in ({**result, "rows": [["a"]]}, {**result, "rows": [["a", "much"]]}):
        with pytest.raises(InputContractBroken):
            validate({"dataset": "shop", "intent": INTENT, "results": [broken]}, shop.context)


def test_an_unknown_dataset_is_not_found(shop: Shop) -> None:
    with pytest.raises(NotFound, match="no dataset 'moon'"):
        code({"dataset": "moon", "intent": INTENT, "values": {}}, shop.context)


def test_the_warehouse_opens_once_for_all_threads(shop: Shop) -> None:
    async def race() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(lambda: id(shop.dataset.warehouse)) for _ in range(16)))

    assert len(set(asyncio.run(race()))) == 1


class _Log:
    def __init__(self) -> None:
        self.entries: dict[str, AuditEntry] = {}

    def append(self, entry: AuditEntry) -> AuditReceipt:
        duplicate = entry.key in self.entries
        self.entries.setdefault(entry.key, entry)
        return AuditReceipt(sequence=1, sha256="a" * 64, duplicate=duplicate)


def test_the_logger_writes_once_a_key() -> None:
    audit_log = _Log()
    given = context(resources=Resources({"audit_log": audit_log}), idempotency_key="t-1/6")
    first, again = (log({"action": "sql.read", "note": "x"}, given) for _ in range(2))
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert audit_log.entries["t-1/6"].details == {"note": "x"}
    with pytest.raises(InternalError, match="audit_log"):
        log({"action": "sql.read"}, context())


def test_a_claim_without_a_source_is_found() -> None:
    sources = [{"id": "S1"}]
    table, items = "| a |\n| --- |\n| 1 |\n\n[Source: S1]", "- x [Source: S1]\n- y [Source: S1]"
    good = f"# T\n\nA. [Source: S1]\n\n{table}\n\n{items}\n\n> note\n"
    assert uncited_claims({}, {"markdown": good, "sources": sources}, context()) == []
    for bad in ("A.\n", "- x [Source: S1]\n- y\n", "| a |\n| --- |\n| 1 |\n\nA. [Source: S2]\n", "| a |\n\n"):
        assert uncited_claims({}, {"markdown": bad, "sources": sources}, context())


def test_a_question_without_a_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(MODEL, encoding="utf-8")
    for kind in ("values", "changes", "share"):
        question = Question.from_json({**INTENT, "kind": kind, "measures": []})
        with pytest.raises(InputContractBroken, match="no measure"):
            question.queries(load_model(path))

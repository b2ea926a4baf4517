"""Retriever: what the warehouse has for an intent, and what it does not."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import permutations
from typing import Any

from agents.canonical import sha256_of
from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.periods import covered_periods, days_of, name_of
from agents.specialists.question import Question, belongs_to
from agents.specialists.wording import label
from tools.sql.intent import Interval, SemanticQuery
from tools.sql.model import SemanticModel
from tools.sql.semantic import build

_TIMEOUT = timedelta(seconds=10)


def retrieve(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Look up schema, known values and coverage for `inputs.intent`.

    Days outside the coverage are cut off where that leaves a fair question, and said so; otherwise they are
    listed under `missing`.
    """
    dataset = Dataset.of(context, inputs["dataset"])
    language = inputs["language"]
    question = Question.from_json(inputs["intent"])
    description = dataset.description
    missing = _unknown_values(question, dataset.model, description.values, language)
    interval, assumptions, outside = _within_coverage(question, dataset, language)
    tables = description.schema()
    if not missing:
        missing = _outside_their_group(question, dataset, language)
    return {
        "answerable": not missing and not outside,
        "intent": {**inputs["intent"], "interval": interval.model_dump(mode="json")},
        "tables": tables,
        "values": {name: list(values) for name, values in description.values.items()},
        "covered": dataset.covered.model_dump(mode="json"),
        "missing": [*missing, *outside],
        "assumptions": assumptions,
        "confidence_score": 1.0,
        "sources": [
            {
                "id": "S1",
                "kind": "sql",
                "label": f"{dataset.name}: schema, {days_of(dataset.covered, language)}",
                "location": ", ".join(sorted(tables)),
                "sha256": sha256_of(tables),
            }
        ],
    }


def _unknown_values(
    question: Question, model: SemanticModel, values: Mapping[str, tuple[str, ...]], language: str
) -> list[dict[str, Any]]:
    missing = []
    for part in question.filters:
        known = values.get(part.dimension)
        for value in part.values:
            if known is not None and value not in known:
                options = [label(model, part.dimension, name, language) for name in known]
                missing.append({"what": "value", "said": value, "options": options[:100]})
    return missing


def _outside_their_group(question: Question, dataset: Dataset, language: str) -> list[dict[str, Any]]:
    """Members that are in none of the groups named beside them: Shenzhen, where only East China was asked about.

    Both filters hold at once, so such a member would silently vanish from the answer.
    """
    model = dataset.model
    listed = {part.dimension: part for part in question.filters if part.operator == "in"}
    missing = []
    for member, group in permutations(listed, 2):
        if not belongs_to(model, member, group):
            continue
        query = SemanticQuery(
            measures=question.measures[:1], dimensions=(member, group), filters=(listed[member],)
        )
        compiled = build(query, model)
        found = dataset.warehouse.query(compiled.sql, compiled.params, max_rows=1_000, timeout=_TIMEOUT)
        inside = {row[0] for row in found.rows if row[1] in listed[group].values}
        for value in listed[member].values:
            if value not in inside:
                said = label(model, member, value, language)
                options = [said, *(label(model, group, name, language) for name in listed[group].values)]
                missing.append({"what": "choice", "said": said, "options": options})
    return missing


def _within_coverage(
    question: Question, dataset: Dataset, language: str
) -> tuple[Interval, list[str], list[dict[str, Any]]]:
    asked, covered = question.interval, dataset.covered
    if not asked.overlaps(covered):
        return asked, [], [_outside(asked, covered, language)]
    interval = Interval(start=max(asked.start, covered.start), end=min(asked.end, covered.end))
    if interval != asked and question.comparison == "previous_period":
        # Half a period against a whole one would look like a fall.
        return asked, [], [_outside(asked, covered, language)]
    base = question.queries(dataset.model)["members"].model_copy(update={"interval": interval}).base_interval()
    if base is not None and not (covered.start <= base.start and base.end <= covered.end):
        return asked, [], [_outside(base, covered, language)]
    assumptions = []
    if interval != asked:
        assumptions.append(
            f"数据只覆盖 {days_of(covered, 'zh')}，因此“{name_of(asked, 'zh')}”按 {days_of(interval, 'zh')} 计算。"
            if language == "zh"
            else f"The data covers {days_of(covered, 'en')} only, so {name_of(asked, 'en')} was taken as "
            f"{days_of(interval, 'en')}."
        )
    return interval, assumptions, []


def _outside(interval: Interval, covered: Interval, language: str) -> dict[str, Any]:
    return {"what": "period", "said": name_of(interval, language), "options": covered_periods(covered, language)}

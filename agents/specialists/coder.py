"""Coder: SQL for a structured intent, built through the semantic layer; no text of the request enters it."""

from collections.abc import Mapping
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.question import Question
from tools.sql.semantic import build


def code(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """One statement for each query that `inputs.intent` needs.

    Raises:
        UnknownName: the intent names a measure, dimension or value that does not exist.
        QueryInvalid: the parts of the intent contradict each other.
        InputContractBroken: the intent is not complete.
    """
    model = Dataset.of(context, inputs["dataset"]).model
    question = Question.from_json(inputs["intent"])
    statements = []
    for purpose, query in question.queries(model).items():
        compiled = build(query, model, known_values=inputs["values"])
        statements.append({"purpose": purpose, **compiled.as_json()})
    return {"statements": statements, "confidence_score": 1.0, "sources": []}

"""Reporter: checked results as an answer in the language of the request, every claim with its source."""

from collections.abc import Mapping
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.narration import narrate
from agents.specialists.question import Question
from agents.specialists.results import Results
from agents.specialists.wording import written_in
from podium.errors import InputContractBroken


def report(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Markdown and typed fields for the results of one question.

    Raises:
        InputContractBroken: the results were contradicted, or do not belong to the intent.
    """
    if not inputs["agrees"]:
        raise InputContractBroken(
            "the results were contradicted when they were recomputed and are not reported",
            next_step="See the contradictions that the validator named.",
        )
    model = Dataset.of(context, inputs["dataset"]).model
    language = written_in(inputs["language"])
    question = Question.from_json(inputs["intent"])
    results = Results.read(question, model, inputs["results"], inputs["statements"], inputs["sources"])
    passages = list(inputs.get("passages", ()))
    sources = [*results.sources, *_passage_sources(passages, len(results.sources))]
    assumptions = list(dict.fromkeys([*inputs.get("assumptions", ()), *inputs.get("coverage_assumptions", ())]))
    return {
        "markdown": narrate(results, language, assumptions, passages, sources),
        "fields": results.fields(language),
        "assumptions": assumptions,
        "confidence_score": min(1.0, inputs.get("understood", 1.0)),
        "sources": sources,
    }


def _passage_sources(passages: list[Mapping[str, Any]], before: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"S{number}",
            "kind": "document",
            "label": passage["title"][:500],
            "location": passage["location"][:500],
            "sha256": passage["sha256"],
        }
        for number, passage in enumerate(passages, start=before + 1)
    ]

"""Parser: from the words of a normalised request to a structured intent, with what it assumed and what is missing.

It only combines what normalisation has understood. A mention that nobody understood, a condition the data cannot
express and a choice the words leave open are listed under `missing`; nothing is guessed.
"""

from collections.abc import Mapping
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.conditions import change_of, comparison_of, interval_of, kind_of
from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.selection import (
    dimension_of,
    filters_of,
    measures_of,
    refuse_part_beside_whole,
    say_what_is_added_up,
)
from agents.specialists.wording import measure_name, written_in

_CONFIDENCE_LOST_BY_AN_ASSUMPTION = 0.05
_LEAST_CONFIDENCE = 0.5


def parse(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """The intent of a request about `inputs.dataset`; `ready` says whether it can be answered as it is."""
    dataset = Dataset.of(context, inputs["dataset"])
    model = dataset.model
    mentions = Mentions(inputs["text"], inputs["entities"])
    findings = Findings(inputs["language"])
    for mention in inputs.get("unresolved", ()):
        findings.lacks("words", mention["text"])
    measures = measures_of(mentions, model, findings)
    filters = filters_of(mentions, model)
    kind = kind_of(mentions, filters)
    dimension = dimension_of(mentions, model, filters, kind, findings)
    interval, second = interval_of(mentions, dataset.covered, findings)
    change = change_of(mentions, kind, findings)
    comparison = comparison_of(mentions, kind, filters, interval, second, findings)
    granularity = mentions.one("granularity", findings)
    if granularity and comparison:
        findings.lacks("choice", granularity, [mentions.text_of("granularity"), mentions.comparison_words()])
    mentions.leave_unexplained(findings)
    if kind != "share":
        refuse_part_beside_whole(mentions, filters, findings)
    if kind == "changes" and dimension:
        say_what_is_added_up(model, dimension, filters, findings)
    ranking = mentions.ranking()
    return {
        "ready": not findings.missing,
        "intent": {
            "kind": kind,
            "measures": list(measures),
            "dimension": dimension,
            "filters": [part.model_dump(mode="json") for part in filters],
            "interval": interval.model_dump(mode="json") if interval else None,
            "comparison": comparison if isinstance(comparison, str | None) else comparison.model_dump(mode="json"),
            "change": change.model_dump(mode="json") if change else None,
            "granularity": granularity,
            "descending": ranking.descending if ranking else True,
            "limit": ranking.count if ranking else None,
        },
        "missing": findings.missing,
        "topics": [measure_name(model, name, written_in(findings.language)) for name in measures],
        "assumptions": findings.assumptions,
        "confidence_score": _confidence(inputs, findings),
        "sources": [],
    }


def _confidence(inputs: Mapping[str, Any], findings: Findings) -> float:
    if findings.missing:
        return 0.0
    surest = [
        float(entity.get("confidence", 1.0)) for entities in inputs["entities"].values() for entity in entities
    ]
    lost = _CONFIDENCE_LOST_BY_AN_ASSUMPTION * len(findings.assumptions)
    return round(max(_LEAST_CONFIDENCE, min([1.0, *surest]) - lost), 4)

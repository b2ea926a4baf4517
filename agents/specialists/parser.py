"""Parser: from the words of a normalised request to a structured intent, with what it assumed and what is missing.

It only combines what normalisation has understood. A mention that nobody understood, a condition the data cannot
express and a choice the words leave open are listed under `missing`; nothing is guessed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.conditions import (
    change_of,
    comparison_of,
    interval_of,
    kind_of,
    refuse_condition_on_a_share,
)
from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.selection import (
    dimension_of,
    filters_of,
    measures_of,
    say_what_is_added_up,
)
from agents.specialists.sides import refuse_unlike_sides
from agents.specialists.wording import measure_name, written_in

_CONFIDENCE_LOST_BY_AN_ASSUMPTION = 0.05
_LEAST_CONFIDENCE = 0.5
_SHOWN_TYPOS = 8
_SHOWN_LETTERS = 24


def parse(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """The intent of a request about `inputs.dataset`; `ready` says whether it can be answered as it is."""
    dataset = Dataset.of(context, inputs["dataset"])
    model = dataset.model
    mentions = Mentions(inputs["text"], inputs["entities"])
    findings = Findings(inputs["language"])
    say_what_was_corrected(inputs.get("corrections", ()), findings)
    for mention in inputs.get("unresolved", ()):
        findings.lacks("words", mention["text"])
    measures = measures_of(mentions, model, findings)
    filters = filters_of(mentions, model)
    kind = kind_of(mentions, filters)
    dimension = dimension_of(mentions, model, filters, kind, findings)
    interval, second = interval_of(mentions, kind, dataset.covered, findings)
    of_ratio = any(model.measure(name).is_ratio for name in measures)
    change = change_of(mentions, kind, of_ratio, findings)
    comparison = comparison_of(mentions, kind, filters, interval, second, findings)
    granularity = mentions.one("granularity", findings)
    if granularity and comparison:
        findings.lacks("choice", granularity, [mentions.text_of("granularity"), mentions.comparison_words()])
    mentions.leave_unexplained(findings)
    if kind == "share":
        refuse_condition_on_a_share(mentions, findings)
    else:
        refuse_unlike_sides(mentions, model, filters, interval, measures, findings)
    if kind == "changes" and dimension:
        say_what_is_added_up(model, dimension, filters, findings)
    ranking = mentions.ranking()
    if ranking and granularity and dimension:
        # "The top 5 cities of each month" is a list for every month.
        findings.lacks("choice", "", [mentions.text_of("granularity"), mentions.text_of("ranking")])
    limit = ranking.count if ranking else None
    if ranking and granularity and dimension is None:
        limit = (
            limit or 1
        )  # "which month was the highest": with a limit, periods stand in the order of the measure
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
            "limit": limit,
        },
        "missing": findings.missing,
        "topics": [measure_name(model, name, written_in(findings.language)) for name in measures],
        "assumptions": findings.assumptions,
        "confidence_score": _confidence(inputs, findings),
        "sources": [],
    }


def say_what_was_corrected(corrections: Sequence[Mapping[str, Any]], findings: Findings) -> None:
    """A misspelling that was read as something else is an assumption too; all of them are told as one."""
    typos = [
        (str(correction["original"])[:_SHOWN_LETTERS], str(correction["replacement"])[:_SHOWN_LETTERS])
        for correction in corrections
        if correction["reason"] == "typo"
    ][:_SHOWN_TYPOS]
    if typos:
        zh = "、".join(f"“{written}”读作“{meant}”" for written, meant in typos)
        en = ", ".join(f'"{written}" as "{meant}"' for written, meant in typos)
        findings.assumes(f"{zh}。", f"Read {en}.")


def _confidence(inputs: Mapping[str, Any], findings: Findings) -> float:
    if findings.missing:
        return 0.0
    surest = [
        float(entity.get("confidence", 1.0)) for entities in inputs["entities"].values() for entity in entities
    ]
    lost = _CONFIDENCE_LOST_BY_AN_ASSUMPTION * len(findings.assumptions)
    return round(max(_LEAST_CONFIDENCE, min([1.0, *surest]) - lost), 4)

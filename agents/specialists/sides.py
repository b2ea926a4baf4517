"""Things set side by side that one query cannot hold so: a city and its region, a region and the country."""

from collections.abc import Sequence
from itertools import pairwise

from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.periods import name_of
from agents.specialists.wording import measure_name, written_in
from tools.sql.intent import Filter, Interval
from tools.sql.model import SemanticModel

_WHOLE = ("全国", "全公司", "全集团", "nation", "country", "company")
_JOINERS = frozenset(
    {"and", "or", "with", "to", "vs", "vs.", "versus", "against", "compared with", "compared to", "&", "+", "/"}
    | {"和", "与", "跟", "同", "及", "以及", "或", "、", "对", "比", "对比", "相比"}
)


def refuse_unlike_sides(
    mentions: Mentions,
    model: SemanticModel,
    filters: Sequence[Filter],
    interval: Interval | None,
    measures: Sequence[str],
    findings: Findings,
) -> None:
    """Ask where two filters would both hold although the request joins what they name: 上海和华东, 华东和全国.

    What is offered is a whole question for each side, which stands in place of the request.
    """
    sides = [*_unlike_neighbours(mentions, filters), *_beside_the_whole(mentions, filters)]
    if not sides:
        return
    language = written_in(findings.language)
    asked = "".join(measure_name(model, name, language) for name in measures[:1])
    days = name_of(interval, language) if interval else ""
    if asked and days:
        sides = [f"{side}{days}{asked}" if language == "zh" else f"{asked} of {side}, {days}" for side in sides]
    findings.lacks("choice", "", list(dict.fromkeys(sides)))


def _unlike_neighbours(mentions: Mentions, filters: Sequence[Filter]) -> list[str]:
    values = sorted(
        (value["start"], value["end"], part.dimension, str(value["text"]))
        for part in filters
        for value in mentions.of(part.dimension)
    )
    for (_, end, kind, said), (start, _, other_kind, other) in pairwise(values):
        if kind != other_kind and mentions.text[end:start].strip().lower() in _JOINERS:
            return [said, other]
    return []


def _beside_the_whole(mentions: Mentions, filters: Sequence[Filter]) -> list[str]:
    for entity in mentions.of("scope"):
        said = str(entity["text"])
        if filters and any(word in said.lower() for word in _WHOLE):
            return [said, *(str(mention["text"]) for mention in mentions.of(filters[0].dimension))]
    return []

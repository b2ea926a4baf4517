"""Which measures, which rows and which members a request is about."""

from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.question import Kind, belongs_to
from agents.specialists.wording import dimension_name, label, listing, measure_name
from tools.sql.intent import Filter
from tools.sql.model import SemanticModel

MEASURE = "metric"
"""The vocabulary's kind of measures."""
DIMENSIONS = ("dimension", "grouping")
"""The kinds of words that say what the members are."""
_ADDABLE = ("sum", "count", "count_distinct")


def measures_of(mentions: Mentions, model: SemanticModel, findings: Findings) -> tuple[str, ...]:
    """The measures that are named; without one there is no question."""
    named = tuple(name for name in mentions.values(MEASURE) if name in model.measures)
    if mentions.of("analysis"):
        # Parts of an average or of a largest value add up to nothing.
        addable = [name for name, measure in model.measures.items() if measure.aggregate in _ADDABLE]
        if any(name not in addable for name in named):
            options = [measure_name(model, name, findings.language) for name in addable]
            findings.lacks("measure", mentions.text_of(MEASURE), options)
    if not named:
        options = [measure_name(model, name, findings.language) for name in model.measures]
        findings.lacks("measure", "", options)
    return named


def filters_of(mentions: Mentions, model: SemanticModel) -> tuple[Filter, ...]:
    """A filter for every dimension whose values are named."""
    return tuple(
        Filter(dimension=name, values=values)
        for name, dimension in model.dimensions.items()
        if dimension.column and (values := mentions.values(name))
    )


def dimension_of(
    mentions: Mentions, model: SemanticModel, filters: tuple[Filter, ...], kind: Kind, findings: Findings
) -> str | None:
    """What the members of the answer are: the dimension that is named, or else the one set side by side."""
    named = _named(mentions, model)
    if named:
        return _finest(named, mentions, model, findings)
    if kind == "share" and len(filters) > 1:
        return _part_of_another(mentions, model, filters, findings)
    if kind == "values" and mentions.adds_up():
        return None
    several = [part.dimension for part in filters if len(part.values) > 1]
    if len(several) > 1:
        findings.lacks("choice", "", [dimension_name(model, name, findings.language) for name in several])
    if several:
        return several[0]
    if kind != "values" and filters:
        return filters[0 if kind == "share" else -1].dimension
    ranks_periods = kind == "values" and mentions.of("granularity")
    if not ranks_periods and (kind != "values" or mentions.ranking()):
        options = [
            dimension_name(model, name, findings.language)
            for name in model.dimensions
            if model.dimensions[name].column
        ]
        findings.lacks("choice", mentions.text_of("ranking"), options)
    return None


def _finest(named: list[str], mentions: Mentions, model: SemanticModel, findings: Findings) -> str:
    """The one of several dimensions that is meant: "every city of every region" is about cities."""
    finest = [name for name in named if all(name == other or belongs_to(model, name, other) for other in named)]
    # "The best city of each region" is a list for every region, which one query here cannot give.
    if len(named) > 1 and (not finest or mentions.ranking()):
        findings.lacks("choice", "", [dimension_name(model, name, findings.language) for name in named])
    return finest[0] if finest else named[0]


def _part_of_another(
    mentions: Mentions, model: SemanticModel, filters: tuple[Filter, ...], findings: Findings
) -> str | None:
    """Which of several filters is the part: Shanghai within East China, or what stands before 占 (is ... of)."""
    names = [part.dimension for part in filters]
    inside = [name for name in names if any(belongs_to(model, name, other) for other in names if other != name)]
    if len(inside) == 1 and len(names) == 2:
        return inside[0]
    part = _part_by_wording(mentions, names) if len(names) == 2 else None
    if part is not None:
        return part
    findings.lacks("choice", "", [dimension_name(model, name, findings.language) for name in names])
    return None


def _part_by_wording(mentions: Mentions, names: list[str]) -> str | None:
    """The part in 线上占华东, "East China's share of online", "share of online in East China"."""
    share = mentions.of("analysis")[0]
    places = sorted((value["start"], value["end"], name) for name in names for value in mentions.of(name))
    if len(places) != len(names):
        return None
    (start, end, first), (other, _, _) = places
    if end <= share["start"] and share["end"] <= other:
        return first
    within = mentions.text[end:other].strip().lower() in ("in", "within")
    return first if within and mentions.text[share["end"] : start].strip().lower() == "of" else None


def say_what_is_added_up(
    model: SemanticModel, dimension: str, filters: tuple[Filter, ...], findings: Findings
) -> None:
    """A product of two regions is judged by both together; a city is in one region only."""
    for part in filters:
        together = len(part.values) > 1 and part.dimension != dimension
        if together and not belongs_to(model, dimension, part.dimension):
            zh = listing([label(model, part.dimension, value, "zh") for value in part.values], "zh")
            en = listing([label(model, part.dimension, value, "en") for value in part.values], "en")
            findings.assumes(
                f"{dimension_name(model, dimension, 'zh')}按{zh}合计计算。",
                f"Each {dimension_name(model, dimension, 'en').lower()} was taken over {en} together.",
            )


def _named(mentions: Mentions, model: SemanticModel) -> list[str]:
    named: list[str] = []
    for kind in DIMENSIONS:
        for entity in mentions.of(kind):
            for name in entity["values"]:
                known = name in model.dimensions and model.dimensions[name].column
                if known and name not in named and not mentions.follows_value_of(entity, name):
                    named.append(name)
    return named

"""Which measures, which rows and which members a request is about."""

from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.question import Kind, belongs_to
from agents.specialists.wording import dimension_name, measure_name
from tools.sql.intent import Filter
from tools.sql.model import SemanticModel

MEASURE = "metric"
"""The vocabulary's kind of measures."""
DIMENSIONS = ("dimension", "grouping")
"""The kinds of words that say what the members are."""


def measures_of(mentions: Mentions, model: SemanticModel, findings: Findings) -> tuple[str, ...]:
    """The measures that are named; without one there is no question."""
    named = tuple(name for name in mentions.values(MEASURE) if name in model.measures)
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
    if len(named) > 1:
        # "Every city of every region" is about cities.
        finest = [
            name for name in named if all(name == other or belongs_to(model, name, other) for other in named)
        ]
        if not finest:
            findings.lacks("choice", "", [dimension_name(model, name, findings.language) for name in named])
        return finest[0] if finest else named[0]
    if named:
        return named[0]
    several = [part.dimension for part in filters if len(part.values) > 1]
    if len(several) > 1:
        findings.lacks("choice", "", [dimension_name(model, name, findings.language) for name in several])
    if several:
        return several[0]
    if kind == "share" and len(filters) == 1:
        return filters[0].dimension
    if kind != "values" and filters:
        return filters[-1].dimension
    if kind != "values" or mentions.ranking():
        options = [
            dimension_name(model, name, findings.language)
            for name in model.dimensions
            if model.dimensions[name].column
        ]
        findings.lacks("choice", mentions.text_of("ranking"), options)
    return None


def _named(mentions: Mentions, model: SemanticModel) -> list[str]:
    named: list[str] = []
    for kind in DIMENSIONS:
        for entity in mentions.of(kind):
            for name in entity["values"]:
                known = name in model.dimensions and model.dimensions[name].column
                if known and name not in named and not mentions.follows_value_of(entity, name):
                    named.append(name)
    return named

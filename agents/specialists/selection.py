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
_WHOLE = ("全国", "全公司", "全集团", "nation", "country", "company")


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


def refuse_part_beside_whole(mentions: Mentions, filters: tuple[Filter, ...], findings: Findings) -> None:
    """East China beside the whole country needs two queries; a filter would drop the country unsaid."""
    for entity in mentions.of("scope"):
        said = str(entity["text"])
        if filters and any(word in said.lower() for word in _WHOLE):
            findings.lacks(
                "choice", said, [said, *(str(mention["text"]) for mention in mentions.of(filters[0].dimension))]
            )


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

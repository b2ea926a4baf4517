"""Is a description something a planner can work with? Judged by its words; no model is asked."""

import re
from collections.abc import Iterable, Iterator

from agents.manifest_text import Finding, ManifestText
from agents.spec import AgentSpec

_LEAST_WORDS = 4
"""Words that say something, below which nobody can plan with a description."""
_SAME = 0.8
"""Share of words in common from which on two descriptions say the same."""
_MAX_CHARS = 2000
_STEM_CHARS = 4

_WORD = re.compile(r"[a-z][a-z'-]+")
_HAN = re.compile("[\u3400-\u9fff]")
_EMPTY_WORDS = """
    about agent agents all also an and another any anything are as at be by can cool data do does doing done each
    etc every everything for from general generic get gets good great handle handles handling has have help helper
    helpful helps how if in information input inputs into is it item items its just kind kinds like make makes
    manage manages many me more my nice of on operation operations or other our output outputs perform performs
    process processes processing provide provides request requests response responses result results run runs
    several simple some something stuff such support supports system task tasks test than that the their them then
    there these they thing things this those to tool tools up use used useful user users uses using utility various
    very want was we well what whatever when which will with work works you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing about what this agent does."""
_FLOW_WORDS = """
    accepts adds answers appends asks builds checks compares computes converts counts creates decides extracts
    finds fetches gives given looks lists measures needs produces reads receives records refuses replies returns
    says searches sends sorts splits summarises summarizes takes tells translates turns writes
"""
_FLOW = frozenset(_FLOW_WORDS.split())
"""Words that say that something comes in or goes out."""
_HAN_FLOW = re.compile("[读写取查返输输入出给生成接收提问答]")


def description_findings(text: ManifestText, spec: AgentSpec, others: Iterable[AgentSpec]) -> Iterator[Finding]:
    """What is weak about a description.

    Args:
        text: The manifest it stands in.
        spec: The agent.
        others: The agents of other names.
    """
    said = telling_words(spec.description)
    of_name = set(spec.name.replace("_", " ").split())
    own = {word for word in said if not any(_akin(word, part) for part in of_name)}
    han = len(_HAN.findall(spec.description))
    place = ("description",)
    if len(own) + han // 2 < _LEAST_WORDS:
        about = "only its name again" if said and not own else f"only {', '.join(sorted(own)) or 'nothing'}"
        message = f"too vague to plan with, it says {about}; say what it does, from what, and what comes out"
        yield text.finding("DESCRIPTION_VAGUE", message, place)
        return
    if len(spec.description) > _MAX_CHARS:
        message = f"{len(spec.description)} characters; a planner reads all of it, keep it under {_MAX_CHARS}"
        yield text.finding("DESCRIPTION_LONG", message, place, fatal=False)
    if not _says_what_flows(spec, said):
        message = "it names nothing of what goes in or comes out; say what the agent is given and returns"
        yield text.finding("DESCRIPTION_ONE_SIDED", message, place, fatal=False)
    for other in others:
        if _overlap(said, telling_words(other.description)) >= _SAME:
            message = f"it says the same as that of {other.name}, so that no planner can choose between them"
            yield text.finding("DESCRIPTION_DUPLICATE", message, place, fatal=False)
            break


def telling_words(description: str) -> frozenset[str]:
    """The words of a description that say something about this agent rather than about any."""
    return frozenset(_WORD.findall(description.lower())) - _EMPTY


def _says_what_flows(spec: AgentSpec, said: frozenset[str]) -> bool:
    if said & _FLOW or _HAN_FLOW.search(spec.description):
        return True
    properties = (*spec.input_schema.get("properties", ()), *spec.output_schema.get("properties", ()))
    parts = {part for name in properties for part in str(name).lower().split("_")} - {"confidence", "score"}
    return any(_akin(word, part) for word in said for part in parts)


def _akin(word: str, part: str) -> bool:
    """Whether two words have one stem, roughly: sort, sorts, sorted."""
    return word == part or (min(len(word), len(part)) >= _STEM_CHARS and word[:_STEM_CHARS] == part[:_STEM_CHARS])


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0

"""Requests that nobody wrote: step texts of the training rows joined along allowed links, and joined requests.

A registry's link graph says which tools may follow each other; the training rows say how a step is worded. Walks
over the graph give sets of tools that no training row has, which keeps the model from learning sets by heart.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conductor.policy.selecting_index import words_of
from conductor.training.examples import Example

_CALL = re.compile(
    r"^\s*(?:then |next,? |finally,? )?(?:call|use|invoke|utilize|execute)s? \S+"
    r"(?: tool| api)?(?: again)?(?:,| and)? (?:to|for) ",
    re.IGNORECASE,
)
_OPENINGS = (
    "",
    "",
    "Please ",
    "Please help me ",
    "I want to ",
    "I need to ",
    "Can you ",
    "Help me ",
    "I'd like to ",
    "Could you ",
)
_LINKS = (
    ", then ",
    ", and then ",
    ", and ",
    " and ",
    ". Then ",
    ". After that, ",
    ", and also ",
    "; ",
    ". Also, ",
    ", and finally ",
    ". Next, ",
    ", next ",
)
_BETWEEN = (
    " ",
    " Also, ",
    " Then, ",
    " After that: ",
    " In addition, ",
    " And also: ",
    "\n",
    " Next: ",
    " Besides that, ",
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d+)?(?![\w.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """How steps are worded, by tool, and which tools may follow which."""

    texts: Mapping[str, tuple[str, ...]]
    follows: Mapping[str, tuple[str, ...]]
    chains: tuple[tuple[tuple[str, str], ...], ...]
    """Tools and wordings of whole training rows."""


def wordings(
    examples: Iterable[Example], links: Iterable[tuple[str, str]], descriptions: Mapping[str, str]
) -> Wordings:
    """Collect the wordings of training rows.

    Args:
        examples: training rows only.
        links: (tool, tool that may follow it).
        descriptions: of every tool; the wording of a tool that no row words.
    """
    texts: dict[str, list[str]] = {}
    chains = []
    for example in examples:
        chain = tuple((step.tool, clause_of(step.text)) for step in example.steps)
        if all(text for _, text in chain):
            chains.append(chain)
        for tool, text in chain:
            if text:
                texts.setdefault(tool, []).append(text)
    follows: dict[str, list[str]] = {}
    for first, second in sorted(links):
        follows.setdefault(first, []).append(second)
    for tool, description in descriptions.items():
        texts.setdefault(tool, [_as_clause(description, tool)])
    return Wordings(
        texts={tool: tuple(found) for tool, found in texts.items()},
        follows={tool: tuple(found) for tool, found in follows.items()},
        chains=tuple(chains),
    )


def clause_of(text: str) -> str:
    """The wording of a step without the tool that it names: "Call x to find a train" is "find a train"."""
    found = _CALL.sub("", text.strip()).strip().rstrip(".")
    return found[:1].lower() + found[1:] if found[1:2].islower() else found


def _as_clause(description: str, tool: str) -> str:
    return (description.strip().rstrip(".") or words_of(tool)).lower()


def walk(source: Wordings, chance: random.Random, length: int) -> tuple[tuple[str, str], ...]:
    """Tools and wordings along the links, up to `length`; shorter where the links end."""
    tool = chance.choice(sorted(source.follows))
    found = [tool]
    while len(found) < length:
        ahead = [after for after in source.follows.get(found[-1], ()) if after not in found]
        if not ahead:
            break
        found.append(chance.choice(ahead))
    return tuple((tool, chance.choice(source.texts[tool])) for tool in found)


def part_of_chain(source: Wordings, chance: random.Random) -> tuple[tuple[str, str], ...]:
    """A stretch of a training row, worded as the row words it, sometimes with other wordings."""
    chain = chance.choice(source.chains)
    size = chance.randint(1, len(chain))
    start = chance.randint(0, len(chain) - size)
    return tuple(
        (tool, chance.choice(source.texts[tool]) if chance.random() < 0.3 else text)
        for tool, text in chain[start : start + size]
    )


def spoken(clauses: Sequence[str], chance: random.Random) -> str:
    """One request out of clauses."""
    text = chance.choice(_OPENINGS)
    for at, clause in enumerate(clauses):
        if at:
            text += chance.choice(_LINKS)
        text += clause
    text = text[:1].upper() + text[1:]
    return text + chance.choice((".", ".", "", "?" if text.startswith(("Can", "Could")) else "."))


def joined_requests(requests: Sequence[str], chance: random.Random) -> str:
    """One request out of whole requests."""
    if chance.random() < 0.15:
        return " ".join(f"{at}. {request.strip()}" for at, request in enumerate(requests, 1))
    text = requests[0].strip()
    for request in requests[1:]:
        between = chance.choice(_BETWEEN)
        if between == " " and text[-1:] not in ".?!":
            between = ". "
        text += between + request.strip()
    return text


def other_numbers(request: str, chance: random.Random) -> str:
    """The same request with other numbers, for calls of one tool again."""

    def changed(found: re.Match[str]) -> str:
        value = found.group()
        if "." in value:
            return f"{float(value) * chance.uniform(0.3, 3):.2f}"
        return str(max(1, round(int(value) * chance.uniform(0.3, 3)) + chance.randint(0, 3)))

    return _NUMBER.sub(changed, request)

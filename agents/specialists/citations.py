"""Golden check of a report: every claim names a source, and every source that is named exists."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.invocation import AgentContext

_CITED = re.compile(r"\[Source: ([^\]]+)\]")
_MAX_SHOWN = 5


def uncited_claims(inputs: Mapping[str, Any], output: Mapping[str, Any], context: AgentContext) -> list[str]:
    """Violations in words; a golden validator as `agents.spec.Validator` describes it."""
    known = {source["id"] for source in output["sources"]}
    violations = [f"no source: {block[:120]}" for block in _blocks(output["markdown"]) if not _CITED.search(block)]
    named = [name for match in _CITED.finditer(output["markdown"]) for name in match[1].split(", ")]
    violations += [f"{name} is cited and not among the sources" for name in named if name not in known]
    return violations[:_MAX_SHOWN]


def _blocks(markdown: str) -> Iterator[str]:
    """Paragraphs and list items that claim something; a table belongs to the line below it."""
    table = ""
    for block in markdown.split("\n\n"):
        if block.startswith("|"):
            table = block
        elif table or not block.lstrip().startswith(("#", ">")):
            for claim in block.split("\n- ") if not table else [f"{table}\n{block}"]:
                if claim.strip():
                    yield claim
            table = ""
    if table:
        yield table

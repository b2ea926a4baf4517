"""Librarian: passages of a pack's documents that explain the topics of a question."""

from collections.abc import Mapping
from typing import Any

from agents.documents import DocumentCollection
from agents.invocation import AgentContext
from agents.specialists.wording import written_in

_LOOKED_AT = 5
_NEAR_ENOUGH = 0.4
"""Cosine from which a passage that is not titled like the topic is still about it."""


def look_up(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """For each of `inputs.topics` the passage that explains it, where there is one.

    A document that is titled like the topic wins over one that only comes near in words and meaning.

    Raises:
        NotFound: there is no such collection.
    """
    collection = DocumentCollection.of(context, inputs["collection"])
    language = written_in(inputs["language"])
    found: dict[str, dict[str, Any]] = {}
    for topic in inputs["topics"]:
        hits = collection.search(topic, language, _LOOKED_AT)
        titled = [hit for hit in hits if hit.title.casefold() == topic.casefold()]
        near = [hit for hit in hits[:1] if hit.cosine >= _NEAR_ENOUGH]
        for hit in (titled or near)[:1]:
            found.setdefault(
                f"{hit.source}#{hit.passage}",
                {
                    "title": hit.title,
                    "text": " ".join(hit.text.split()),
                    "location": f"{collection.name}: {hit.source}, characters {hit.start} to {hit.end}",
                    "sha256": collection.sha256(hit.source),
                },
            )
    passages = list(found.values())
    return {
        "passages": passages,
        "confidence_score": 1.0,
        "sources": [
            {
                "id": f"S{number}",
                "kind": "document",
                "label": passage["title"],
                "location": passage["location"],
                "sha256": passage["sha256"],
            }
            for number, passage in enumerate(passages, start=1)
        ],
    }

"""Librarian: passages of a pack's documents that explain the topics of a question."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents.documents import DocumentCollection
from agents.invocation import AgentContext
from agents.specialists.wording import written_in

if TYPE_CHECKING:
    from tools.search.index import Hit
    from tools.search.passages import Passage

_NEAR_ENOUGH = 0.4
"""Cosine from which a passage that is not titled like the topic is still about it."""


def look_up(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """For each of `inputs.topics` the passage that explains it, where there is one.

    A document that is titled like the topic explains it; only without one is the collection searched, which loads
    an embedding model at the first time.

    Raises:
        NotFound: there is no such collection.
    """
    collection = DocumentCollection.of(context, inputs["collection"])
    language = written_in(inputs["language"])
    found: dict[str, dict[str, Any]] = {}
    for topic in inputs["topics"]:
        titled = collection.titled(topic, language)
        if titled is not None:
            source, passage = titled
            found.setdefault(source, _passage(collection, topic, source, passage))
            continue
        for hit in collection.search(topic, language, 1):
            if hit.cosine >= _NEAR_ENOUGH:
                found.setdefault(f"{hit.source}#{hit.passage}", _passage(collection, hit.title, hit.source, hit))
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


def _passage(collection: DocumentCollection, title: str, source: str, passage: "Passage | Hit") -> dict[str, Any]:
    return {
        "title": title,
        "text": " ".join(passage.text.split()),
        "location": f"{collection.name}: {source}, characters {passage.start} to {passage.end}",
        "sha256": collection.sha256(source),
    }

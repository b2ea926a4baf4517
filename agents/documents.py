"""A small collection of documents that explain what a pack's answers mean, searchable by words and meaning."""

import hashlib
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agents.invocation import AgentContext
from podium.errors import NotFound

if TYPE_CHECKING:
    from tools.search.index import DocumentIndex, Hit
    from tools.search.passages import Passage


@dataclass(frozen=True, kw_only=True)
class DocumentCollection:
    """Markdown files, one subfolder for each language; indexed in memory at the first search.

    Safe to share between threads.
    """

    name: str
    folder: Path
    """Holds `zh/*.md` and `en/*.md`; a file's name is its title."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    _indexes: "dict[str, DocumentIndex]" = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def resource_name(name: str) -> str:
        """The name of a collection among the resources."""
        return f"documents.{name}"

    @classmethod
    def of(cls, context: AgentContext, name: str) -> "DocumentCollection":
        """The collection of that name that an agent was given.

        Raises:
            NotFound: there is none.
        """
        if cls.resource_name(name) not in context.resources.entries:
            raise NotFound(f"there is no document collection {name!r}", next_step="Name one that a pack brings.")
        return context.resources.get(cls.resource_name(name), cls)

    def search(self, query: str, language: str, limit: int) -> "tuple[Hit, ...]":
        """The best passages in one language, best first; `source` is the file's path within the folder."""
        return self._index(language).search(query, limit)

    def titled(self, title: str, language: str) -> "tuple[str, Passage] | None":
        """The document with this title, as its `source` and first passage; needs no index and no model."""
        # Imported here, as for `_index`: most processes that load packs never look anything up.
        from tools.search.passages import split_passages

        for path in sorted((self.folder / language).glob("*.md")):
            if _title(path).casefold() == title.casefold():
                first = next(iter(split_passages(path.read_text(encoding="utf-8"))), None)
                return None if first is None else (f"{language}/{path.name}", first)
        return None

    def sha256(self, source: str) -> str:
        """SHA-256 of a document, in hexadecimal."""
        return hashlib.sha256((self.folder / source).read_bytes()).hexdigest()

    def _index(self, language: str) -> "DocumentIndex":
        # Imported here so that a process which never searches loads no embedding model.
        from tools.embeddings.minilm import MiniLmEmbedder
        from tools.embeddings.multilingual import MultilingualEmbedder
        from tools.search.index import DocumentIndex

        with self._lock:
            if language not in self._indexes:
                embedder = MiniLmEmbedder() if language == "en" else MultilingualEmbedder()
                index = DocumentIndex(None, embedder=embedder)
                for path in sorted((self.folder / language).glob("*.md")):
                    text = path.read_text(encoding="utf-8")
                    index.add(f"{language}/{path.name}", text, title=_title(path))
                self._indexes[language] = index
            return self._indexes[language]


def _title(path: Path) -> str:
    return path.stem.replace("-", " ")

"""A searchable collection of documents in one SQLite file (or in memory).

A query is ranked twice, by words (BM25 of FTS5) and by meaning (cosine), and the two rankings are fused by
reciprocal rank: score = sum of 1 / (60 + rank) (Cormack, Clarke, Büttcher, SIGIR 2009). The query's vector is
compared with those of all passages at once, which is exact and takes milliseconds for some ten thousand of them.
"""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from grpc import StatusCode

from podium.errors import LimitExceeded, PodiumError
from tools.embeddings.port import Embedder, Matrix
from tools.search.passages import Passage, split_passages
from tools.search.snippets import snippet
from tools.search.terms import index_terms, match_expression, query_terms

MAX_DOCUMENT_CHARS = 2_000_000
MAX_QUERY_CHARS = 4000
MAX_HITS = 100
_RANK_OFFSET = 60
_CANDIDATES = 50
_MAX_QUERY_TERMS = 64
_SCHEMA_VERSION = 1
_SCHEMA = f"""
CREATE TABLE document (source TEXT PRIMARY KEY, title TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passage (
  id INTEGER PRIMARY KEY, source TEXT NOT NULL REFERENCES document, number INTEGER NOT NULL,
  start INTEGER NOT NULL, "end" INTEGER NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL,
  UNIQUE (source, number)
);
CREATE VIRTUAL TABLE passage_terms USING fts5(terms, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE property (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_SCHEMA_VERSION};
"""


class SearchError(PodiumError):
    """A search index cannot be used as asked."""

    code = "SEARCH_ERROR"
    status = StatusCode.FAILED_PRECONDITION


class SearchIndexForeign(SearchError):
    """The file is no search index, or was built with another embedder or version."""

    code = "SEARCH_INDEX_FOREIGN"
    advice = "Build the index anew from the documents."


class SearchLimitExceeded(LimitExceeded):
    """A document or query is too long."""

    code = "SEARCH_LIMIT_EXCEEDED"
    advice = "Split the document, or shorten the query."


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One passage that answers a query, best first."""

    source: str
    """Id of the document, as it was added."""
    title: str
    passage: int
    """Number of the passage in its document, from 0."""
    start: int
    """The passage is [start, end) of the document's text."""
    end: int
    text: str
    snippet: str
    score: float
    """Fused score, comparable within one search only."""
    cosine: float
    """Nearness in meaning, in [-1, 1]."""


class DocumentIndex:
    """Documents by source id; safe to use from several threads."""

    def __init__(self, path: Path | None, *, embedder: Embedder, min_cosine: float = 0.3) -> None:
        """Open or create an index.

        Args:
            path: the file; None keeps everything in memory.
            embedder: makes the vectors of passages and queries; an existing file must be of its space.
            min_cosine: a passage without a word of the query must be at least this near in meaning.

        Raises:
            SearchIndexForeign: the file is something else, or of another embedder.
        """
        self._embedder = embedder
        self._min_cosine = min_cosine
        self._lock = threading.Lock()
        self._vectors: tuple[list[int], Matrix] | None = None
        self._seen_version = 0
        self._connection = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise SearchIndexForeign(f"{path} is not a search index: {error}") from error
        except SearchIndexForeign:
            self._connection.close()
            raise

    def add(self, source: str, text: str, *, title: str = "") -> int:
        """Store a document, replacing an earlier one of the same source; returns its number of passages.

        Raises:
            SearchLimitExceeded: the text is too long.
        """
        if len(text) > MAX_DOCUMENT_CHARS:
            raise SearchLimitExceeded(f"{source} has {len(text)} characters, the limit is {MAX_DOCUMENT_CHARS}")
        source, title, text = _storable(source), _storable(title), _storable(text)
        passages = split_passages(text)
        vectors = self._embedder.embed([passage.text for passage in passages])
        with self._lock, self._connection as transaction:
            transaction.execute("BEGIN IMMEDIATE")
            self._delete(source)
            self._insert(source, title, passages, vectors)
            self._vectors = None
        return len(passages)

    def remove(self, source: str) -> bool:
        """Forget a document; False if there was none."""
        with self._lock, self._connection as transaction:
            transaction.execute("BEGIN IMMEDIATE")
            existed = self._delete(_storable(source))
            self._vectors = None
        return existed

    def sources(self) -> tuple[str, ...]:
        """All source ids, sorted."""
        with self._lock:
            rows = self._connection.execute("SELECT source FROM document ORDER BY source").fetchall()
        return tuple(source for (source,) in rows)

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """The best passages for `query`, at most `limit` (1 to `MAX_HITS`); nothing for an empty query.

        Raises:
            SearchLimitExceeded: the query is too long.
            ValueError: `limit` is out of range.
        """
        if not 1 <= limit <= MAX_HITS:
            raise ValueError(f"limit must be from 1 to {MAX_HITS}, not {limit}")
        if len(query) > MAX_QUERY_CHARS:
            raise SearchLimitExceeded(f"the query has {len(query)} characters, the limit is {MAX_QUERY_CHARS}")
        query = _storable(query)
        terms = query_terms(query)[:_MAX_QUERY_TERMS]
        if not terms:
            return ()
        vector = self._embedder.embed([query])[0]
        with self._lock:
            by_words = self._rank_by_words(terms, max(limit, _CANDIDATES))
            cosines = self._cosines(vector)
            by_meaning = sorted(cosines, key=lambda id_: (-cosines[id_], id_))[: max(limit, _CANDIDATES)]
            near = [id_ for id_ in by_meaning if cosines[id_] >= self._min_cosine]
            scores = fuse(by_words, near)
            best = sorted(scores, key=lambda id_: (-scores[id_], id_))[:limit]
            return tuple(self._hit(id_, scores[id_], cosines[id_], terms) for id_ in best)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _open(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version == 0 and tables == 0:
            self._connection.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA}")
            # In one transaction: a file without its space, left by a crash in between, could never be opened.
            self._connection.execute("INSERT INTO property VALUES ('space', ?)", (self._embedder.space,))
            self._connection.execute("COMMIT")
        elif version != _SCHEMA_VERSION:
            raise SearchIndexForeign(f"the file has version {version}, this is version {_SCHEMA_VERSION}")
        (space,) = self._connection.execute("SELECT value FROM property WHERE name = 'space'").fetchone()
        if space != self._embedder.space:
            raise SearchIndexForeign(f"the index holds vectors of {space}, not of {self._embedder.space}")

    def _insert(self, source: str, title: str, passages: Sequence[Passage], vectors: Matrix) -> None:
        self._connection.execute("INSERT INTO document VALUES (?, ?)", (source, title))
        for number, (passage, vector) in enumerate(zip(passages, vectors, strict=True)):
            cursor = self._connection.execute(
                'INSERT INTO passage (source, number, start, "end", text, vector) VALUES (?, ?, ?, ?, ?, ?)',
                (source, number, passage.start, passage.end, passage.text, vector.astype("<f4").tobytes()),
            )
            # The title counts for its first passage, so that a document is found by its name.
            words = index_terms(f"{title}\n{passage.text}" if number == 0 else passage.text)
            self._connection.execute(
                "INSERT INTO passage_terms (rowid, terms) VALUES (?, ?)", (cursor.lastrowid, " ".join(words))
            )

    def _delete(self, source: str) -> bool:
        self._connection.execute(
            "DELETE FROM passage_terms WHERE rowid IN (SELECT id FROM passage WHERE source = ?)", (source,)
        )
        self._connection.execute("DELETE FROM passage WHERE source = ?", (source,))
        return self._connection.execute("DELETE FROM document WHERE source = ?", (source,)).rowcount > 0

    def _rank_by_words(self, terms: Sequence[str], limit: int) -> list[int]:
        rows = self._connection.execute(
            "SELECT rowid FROM passage_terms WHERE passage_terms MATCH ? "
            "ORDER BY bm25(passage_terms), rowid LIMIT ?",
            (match_expression(terms), limit),
        )
        return [id_ for (id_,) in rows]

    def _cosines(self, vector: Matrix) -> dict[int, float]:
        # Another process may have written to the file since the vectors were read.
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if self._vectors is None or version != self._seen_version:
            self._seen_version = version
            rows = self._connection.execute("SELECT id, vector FROM passage ORDER BY id").fetchall()
            matrix = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4")
            self._vectors = (
                [id_ for id_, _ in rows],
                matrix.reshape(len(rows), self._embedder.dimensions).astype(np.float32),
            )
        ids, matrix = self._vectors
        return dict(zip(ids, np.clip(matrix @ vector, -1, 1).tolist(), strict=True))

    def _hit(self, id_: int, score: float, cosine: float, terms: Sequence[str]) -> Hit:
        source, title, number, start, end, text = self._connection.execute(
            'SELECT source, title, number, start, "end", text '
            "FROM passage JOIN document USING (source) WHERE id = ?",
            (id_,),
        ).fetchone()
        return Hit(
            source=source,
            title=title,
            passage=number,
            start=start,
            end=end,
            text=text,
            snippet=snippet(text, terms),
            score=round(score, 6),
            cosine=round(cosine, 4),
        )


def fuse(*rankings: Sequence[int]) -> Mapping[int, float]:
    """Reciprocal rank fusion of rankings, each with the best first."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (_RANK_OFFSET + rank)
    return scores


def _storable(text: str) -> str:
    """Without NUL and lone surrogates, which SQLite's text functions and UTF-8 do not take."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")

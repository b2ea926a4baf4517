"""Choose the embedder by language, once for everything that will be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tools.embeddings.port import Embedded, Embedder, Matrix, embedded


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderRouter:
    """Two embedders: a fast one for English, and one for every language."""

    english: Embedder
    multilingual: Embedder

    def choose(self, *groups: Sequence[str], language: Literal["zh", "en", "other"] | None = None) -> Embedder:
        """The embedder for all texts of `groups` together.

        English only if `language` says so or is not given, and no text has a letter outside of A to Z: one Chinese
        text on either side needs the multilingual model for both.
        """
        if language not in (None, "en") or any(_is_foreign(text) for group in groups for text in group):
            return self.multilingual
        return self.english

    def embed(self, texts: Sequence[str]) -> Embedded:
        """All of `texts` in one space."""
        return embedded(self.choose(texts), texts)

    def similarities(self, texts: Sequence[str], others: Sequence[str]) -> Matrix:
        """Cosines of every text with every other, both sides by the same model."""
        embedder = self.choose(texts, others)
        return embedded(embedder, texts).similarities(embedded(embedder, others))


def _is_foreign(text: str) -> bool:
    return any(char.isalpha() and not char.isascii() for char in text)

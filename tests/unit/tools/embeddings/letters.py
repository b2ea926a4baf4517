"""A tiny deterministic embedder for tests: texts that share letters and words are near each other."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.embeddings.port import Matrix, checked_texts, unit_rows
from tools.text.tokens import lower, tokenise


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterEmbedder:
    """Counts words and their three-letter parts in hashed buckets."""

    space: str = "letters-64"
    dimensions: int = 64
    max_tokens: int = 1000

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(checked_texts(texts)):
            for token in tokenise(lower(text)):
                parts = {token.text, *(token.text[index : index + 3] for index in range(len(token.text) - 2))}
                for part in parts:
                    bucket = int.from_bytes(hashlib.sha256(part.encode()).digest()[:4], "big") % self.dimensions
                    vectors[row, bucket] += 1
        return unit_rows(vectors)

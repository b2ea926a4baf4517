"""What an embedder is, and vectors that know which model they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from grpc import StatusCode
from numpy.typing import NDArray

from podium.errors import LimitExceeded, PodiumError

Matrix = NDArray[np.float32]

MAX_TEXT_CHARS = 20_000
"""The longest text that is embedded; models read far less of it (see `Embedder.max_tokens`)."""


class EmbeddingSpacesDiffer(PodiumError):
    """Vectors of two models were compared; their angle means nothing."""

    code = "EMBEDDING_SPACES_DIFFER"
    status = StatusCode.INTERNAL
    advice = "Embed both sides with the same model, e.g. through EmbedderRouter.choose."


class EmbeddingTextTooLong(LimitExceeded):
    """A text is too long to embed."""

    code = "EMBEDDING_TEXT_TOO_LONG"
    advice = "Split the text into passages first (tools.search does)."


class Embedder(Protocol):
    """Turns texts into vectors; texts of like meaning get vectors of small angle."""

    @property
    def space(self) -> str:
        """Name of the model and version whose vectors these are; stored beside every vector."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """How much of a text the model reads; the rest does not count."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of `texts`: float32, shape (len(texts), dimensions), each of length 1, all finite.

        Raises:
            EmbeddingTextTooLong: a text has more than `MAX_TEXT_CHARS` characters.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedded:
    """Vectors together with the space they belong to."""

    space: str
    vectors: Matrix

    def similarities(self, others: "Embedded") -> Matrix:
        """Cosines in [-1, 1], shape (own count, other count).

        Raises:
            EmbeddingSpacesDiffer: the two come from different models.
        """
        if self.space != others.space:
            raise EmbeddingSpacesDiffer(f"vectors of {self.space} cannot be compared with those of {others.space}")
        cosines: Matrix = np.clip(self.vectors @ others.vectors.T, -1.0, 1.0)
        return cosines


def embedded(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """Embed `texts` and keep the name of the space with the vectors."""
    return Embedded(space=embedder.space, vectors=embedder.embed(texts))


def checked_texts(texts: Sequence[str]) -> list[str]:
    """`texts` as a list; lone surrogates, which no tokeniser takes, become U+FFFD.

    Raises:
        EmbeddingTextTooLong: a text is too long.
    """
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT_CHARS:
        raise EmbeddingTextTooLong(f"a text of {longest} characters, the limit is {MAX_TEXT_CHARS}")
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]


def unit_rows(vectors: NDArray[np.floating]) -> Matrix:
    """Rows scaled to length 1; a row without direction becomes the first axis, so that no NaN arises."""
    rows: Matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    lengths: Matrix = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    empty = lengths < np.finfo(np.float32).tiny
    result: Matrix = (rows / np.where(empty, 1, lengths)[:, None]).astype(np.float32)
    result[empty] = 0
    result[empty, 0] = 1
    return result

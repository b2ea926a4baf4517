"""Requests in languages that the encoder does not read: sentence vectors of the whole and of its clauses."""

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from conductor.policy.parts import Floats

MOST_CLAUSES = 12
_READ = 0.75
"""Share of letters that must be Latin for the encoder to be used."""
_ENDS = re.compile(
    r"[，。；！？、：\n]+|[,;!?]+\s+|\.\s+|然后|接着|随后|最后|并且|同时|以及|再(?=[^见])|\b(?:and then|then|and|after that)\b"
)
_SHORTEST = 2


class Sentences(Protocol):
    """Embeds sentences of many languages; `tools.embeddings.multilingual.MultilingualEmbedder` does."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """Vectors [texts, 512]."""
        ...


def reads(request: str) -> bool:
    """Whether the encoder can read this request; otherwise give its `foreign_vectors`."""
    letters = [sign for sign in request if sign.isalpha()]
    latin = sum(sign < "\u0250" for sign in letters)
    return not letters or latin >= _READ * len(letters)


def clauses(request: str) -> tuple[str, ...]:
    """The pieces of a request between punctuation and words like "then"."""
    found = [" ".join(piece.split()) for piece in _ENDS.split(request)]
    return tuple(piece for piece in found if len(piece) >= _SHORTEST)[:MOST_CLAUSES]


def foreign_vectors(sentences: Sentences, request: str) -> Floats:
    """What `Extra.multilingual` takes: [k, 512], the whole request first.

    Raises:
        ModelError: the model of the sentences is not installed.
        EmbeddingTextTooLong: the request is too long.
    """
    return np.asarray(sentences.embed([request, *clauses(request)]), dtype=np.float32)

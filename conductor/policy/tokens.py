"""Texts to word pieces and back to the characters they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.models.pinned import PinnedModels, committed_models

MAX_TOKENS = 256
"""What the encoder was trained with; longer texts are cut at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBatch:
    """Texts as padded rows of word pieces."""

    ids: NDArray[np.int64]
    """[batch, length]; 0 is padding."""
    mask: NDArray[np.int64]
    """[batch, length]; 1 where there is a piece."""
    spans: tuple[tuple[tuple[int, int], ...], ...]
    """For each text and piece, the characters [start, end) it stands for; (0, 0) for the markers at both ends."""


class Tokens:
    """Cuts texts into the word pieces of the encoder; the vocabulary is verified when it is loaded."""

    def __init__(self, models: PinnedModels | None = None) -> None:
        """Load the vocabulary.

        Raises:
            ModelError: it is not the reviewed one or not installed.
        """
        from tokenizers import Tokenizer

        content = (models or committed_models()).verified_bytes("minilm-tokenizer")
        self._tokenizer: Any = Tokenizer.from_buffer(content)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def batch(self, texts: Sequence[str]) -> TokenBatch:
        """Rows for `texts`, padded to the longest."""
        encoded = self._tokenizer.encode_batch(list(texts))
        length = max((len(item.ids) for item in encoded), default=0)
        ids = np.zeros((len(encoded), length), dtype=np.int64)
        mask = np.zeros((len(encoded), length), dtype=np.int64)
        for row, item in enumerate(encoded):
            ids[row, : len(item.ids)] = item.ids
            mask[row, : len(item.ids)] = 1
        return TokenBatch(ids=ids, mask=mask, spans=tuple(tuple(item.offsets) for item in encoded))

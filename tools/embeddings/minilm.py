"""English sentences: all-MiniLM-L6-v2 as int8 ONNX, mean-pooled over the tokens of a sentence.

Source: sentence-transformers/all-MiniLM-L6-v2 (mean pooling, then length 1), quantised; 384 dimensions.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from tools.embeddings.port import Matrix, checked_texts, unit_rows
from tools.models.pinned import PinnedModels, committed_models
from tools.onnx.model import OnnxModel

_MAX_TOKENS = 256  # the length the model was trained with
_BATCH = 16


class MiniLmEmbedder:
    """Embeds English text; the model is verified and loaded at the first use."""

    def __init__(self, *, models: PinnedModels | None = None, threads: int = 1) -> None:
        """Prepare; nothing is read yet.

        Args:
            models: the list of reviewed model files; the committed one unless given.
            threads: threads of one run; a second one gains little on short texts.
        """
        self._models = models or committed_models()
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, OnnxModel] | None = None

    @property
    def space(self) -> str:
        """Name of the vector space."""
        return "all-minilm-l6-v2-int8"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return 384

    @property
    def max_tokens(self) -> int:
        """Word pieces the model reads of a text."""
        return _MAX_TOKENS

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of `texts` (see `Embedder.embed`).

        Raises:
            EmbeddingTextTooLong: a text is too long.
            ModelError: the model is not the reviewed one or not installed.
            OnnxError: the runtime failed.
        """
        checked = checked_texts(texts)
        if not checked:
            return np.empty((0, self.dimensions), dtype=np.float32)
        tokenizer, model = self._load()
        encodings = tokenizer.encode_batch(checked)
        # Texts of like length share a batch, because a batch is padded to its longest.
        order = sorted(range(len(checked)), key=lambda index: len(encodings[index].ids))
        vectors = np.empty((len(checked), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = _run(model, [encodings[row].ids for row in rows])
        return unit_rows(vectors)

    def _load(self) -> tuple[Tokenizer, OnnxModel]:
        with self._lock:
            if self._loaded is None:
                tokenizer = Tokenizer.from_buffer(self._models.verified_bytes("minilm-tokenizer"))
                tokenizer.enable_truncation(max_length=_MAX_TOKENS)
                tokenizer.no_padding()
                model = OnnxModel("minilm-int8", models=self._models, threads=self._threads)
                self._loaded = (tokenizer, model)
            return self._loaded


def _run(model: OnnxModel, token_ids: Sequence[Sequence[int]]) -> Matrix:
    """Mean of the last hidden state over the real tokens of each row."""
    longest = max(map(len, token_ids))
    ids = np.zeros((len(token_ids), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(token_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    outputs = model.run({name: inputs[name] for name in model.input_names})
    hidden = outputs[model.output_names[0]].astype(np.float32)
    weights = mask[:, :, None].astype(np.float32)
    pooled: Matrix = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return pooled

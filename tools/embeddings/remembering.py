"""An embedder that remembers its latest vectors, for texts that come again within a moment."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from tools.embeddings.port import Embedder, Matrix


class RememberingEmbedder:
    """Wraps an embedder; safe from several threads.

    Every text that an agent of a task is given is compared with the same request: embedding it takes 6.5 ms of a
    core (MiniLM, 16 tokens, AVX2), finding it here some microseconds.
    """

    def __init__(self, inner: Embedder, *, capacity: int = 512) -> None:
        """Embed by `inner` what is not remembered.

        Args:
            inner: does the work.
            capacity: how many vectors are kept, the latest used; 512 of 384 dimensions take under 1 MB.
        """
        self._inner = inner
        self._capacity = capacity
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def space(self) -> str:
        """Name of the vector space."""
        return self._inner.space

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._inner.dimensions

    @property
    def max_tokens(self) -> int:
        """How much of a text the model reads."""
        return self._inner.max_tokens

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of `texts`; see `Embedder.embed`."""
        known = self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            # Outside of the lock: two threads may embed the same text, and neither waits for the other's model.
            fresh = dict(zip(missing, self._inner.embed(missing), strict=True))
            self._keep(fresh)
            known |= fresh
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def _known(self, texts: Sequence[str]) -> dict[str, Matrix]:
        with self._lock:
            found = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in found:
                self._vectors.move_to_end(text)
            return found

    def _keep(self, fresh: dict[str, Matrix]) -> None:
        with self._lock:
            for text, vector in fresh.items():
                # A copy: a row of a larger array would keep the whole of it.
                self._vectors[text] = vector.copy()
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)

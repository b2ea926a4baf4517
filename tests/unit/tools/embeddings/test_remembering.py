"""A remembered vector is the vector the model gave, and only the latest are kept."""

from collections.abc import Sequence

import numpy as np

from tests.unit.tools.embeddings.letters import LetterEmbedder
from tools.embeddings.port import Matrix
from tools.embeddings.remembering import RememberingEmbedder


class Counting:
    """Counts which texts reach the model."""

    def __init__(self) -> None:
        self.inner = LetterEmbedder()
        self.asked: list[str] = []
        self.space, self.dimensions, self.max_tokens = "letters-64", 64, 1000

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked.extend(texts)
        return self.inner.embed(texts)


def test_a_text_reaches_the_model_once_and_keeps_its_vector_and_place() -> None:
    model = Counting()
    embedder = RememberingEmbedder(model)
    embedder.embed(["tea", "coffee"])
    vectors = embedder.embed(["water", "tea", "water"])
    assert model.asked == ["tea", "coffee", "water"]
    assert np.array_equal(vectors, LetterEmbedder().embed(["water", "tea", "water"]))
    assert vectors.dtype == np.float32


def test_nothing_gives_an_empty_matrix_of_the_right_width() -> None:
    assert RememberingEmbedder(Counting()).embed([]).shape == (0, 64)


def test_the_least_used_goes_first() -> None:
    model = Counting()
    embedder = RememberingEmbedder(model, capacity=2)
    for text in ("a", "b", "a", "c"):  # "b" goes when "c" comes
        embedder.embed([text])
    embedder.embed(["a"])
    embedder.embed(["b"])
    assert model.asked == ["a", "b", "c", "b"]


def test_it_names_its_model() -> None:
    embedder = RememberingEmbedder(LetterEmbedder())
    assert (embedder.space, embedder.dimensions, embedder.max_tokens) == ("letters-64", 64, 1000)


def test_more_texts_than_it_keeps_are_still_all_embedded() -> None:
    texts = [f"text {number}" for number in range(9)]
    embedder = RememberingEmbedder(Counting(), capacity=3)
    assert np.array_equal(embedder.embed(texts), LetterEmbedder().embed(texts))

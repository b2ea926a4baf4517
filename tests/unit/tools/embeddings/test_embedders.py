"""Every embedder keeps the same promises, the real models included."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.tools.embeddings.letters import LetterEmbedder
from tools.embeddings.minilm import MiniLmEmbedder
from tools.embeddings.multilingual import MultilingualEmbedder
from tools.embeddings.port import (
    MAX_TEXT_CHARS,
    Embedded,
    Embedder,
    EmbeddingSpacesDiffer,
    EmbeddingTextTooLong,
    embedded,
    unit_rows,
)
from tools.embeddings.routing import EmbedderRouter
from tools.models.pinned import ModelNotPinned, PinnedModels

MINILM = MiniLmEmbedder()
MULTILINGUAL = MultilingualEmbedder()


@pytest.mark.parametrize("embedder", [MINILM, MULTILINGUAL, LetterEmbedder()], ids=lambda embedder: embedder.space)
class TestPromises:
    def test_shape_type_and_length(self, embedder: Embedder):
        texts = ["sales fell", "", "上季度销售额", "a" * 5000, "\ud800", "\x00", "👩‍👩‍👧", "sales fell"]
        vectors = embedder.embed(texts)
        assert vectors.shape == (len(texts), embedder.dimensions)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(vectors[0], vectors[-1], atol=1e-5)

    def test_a_batch_gives_what_single_texts_give(self, embedder: Embedder):
        texts = [f"text number {number} " * (number + 1) for number in range(20)]
        alone = np.concatenate([embedder.embed([text]) for text in texts])
        assert (np.einsum("ij,ij->i", alone, embedder.embed(texts)) > 0.98).all()

    def test_nothing_gives_nothing(self, embedder: Embedder):
        assert embedder.embed([]).shape == (0, embedder.dimensions)

    def test_a_huge_text_is_refused(self, embedder: Embedder):
        with pytest.raises(EmbeddingTextTooLong):
            embedder.embed(["a" * (MAX_TEXT_CHARS + 1)])


def test_text_beyond_the_token_limit_does_not_count():
    start = "sales fell in the east " * 100
    for embedder in (MINILM, MULTILINGUAL):
        one, other = embedder.embed([start + "cats and dogs", start + "rain and snow"])
        assert one @ other > 0.999


def test_english_meaning():
    cosines = embedded(MINILM, ["sales fell in Shanghai", "revenue dropped in Shanghai", "the cat sat on the mat"])
    matrix = cosines.similarities(cosines)
    assert matrix[0, 1] > 0.7 > 0.3 > matrix[0, 2]


def test_meaning_across_languages():
    english = embedded(MULTILINGUAL, ["sales fell in Shanghai", "the cat sat on the mat"])
    chinese = embedded(MULTILINGUAL, ["上海销售额下降", "猫坐在垫子上"])
    matrix = english.similarities(chinese)
    assert matrix[0, 0] > 0.7 > 0.4 > matrix[0, 1]
    assert matrix[1, 1] > 0.7 > 0.4 > matrix[1, 0]


@pytest.mark.parametrize("make", [MiniLmEmbedder, MultilingualEmbedder])
def test_only_reviewed_files_are_loaded_and_only_at_the_first_use(make: Callable[..., Embedder]):
    embedder = make(models=PinnedModels({}))
    with pytest.raises(ModelNotPinned):
        embedder.embed(["a"])


def test_two_spaces_are_never_compared():
    one = Embedded(space="a", vectors=np.eye(2, dtype=np.float32))
    other = Embedded(space="b", vectors=np.eye(2, dtype=np.float32))
    with pytest.raises(EmbeddingSpacesDiffer):
        one.similarities(other)


def test_a_vector_without_direction_still_has_length_one():
    rows = unit_rows(np.array([[0.0, 0.0], [3.0, 4.0]]))
    np.testing.assert_allclose(rows, [[1, 0], [0.6, 0.8]], atol=1e-6)


class TestRouter:
    english = LetterEmbedder(space="en")
    multilingual = LetterEmbedder(space="multi")
    router = EmbedderRouter(english=english, multilingual=multilingual)

    @pytest.mark.parametrize(
        ("groups", "language", "space"),
        [
            ((["sales"], ["revenue 15%"]), None, "en"),
            ((["sales"], ["营收"]), None, "multi"),
            ((["销售额"], ["revenue"]), None, "multi"),
            ((["Umsätze"],), None, "multi"),
            ((["Umsatz"],), "other", "multi"),
            ((["sales"],), "en", "en"),
            ((["销售额"],), "en", "multi"),
        ],
    )
    def test_one_model_for_both_sides(self, groups, language, space):
        assert self.router.choose(*groups, language=language).space == space

    def test_similarities_work_across_languages(self):
        assert self.router.similarities(["sales"], ["营收", "sales"]).shape == (1, 2)

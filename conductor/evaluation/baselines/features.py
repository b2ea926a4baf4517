"""TF-IDF features of requests; the only place where the baselines load scikit-learn's text features."""

from typing import Any

from conductor.evaluation.baselines.tasks import BaselineLibraryMissing

_WORD = r"(?u)\w+"


def word_features() -> Any:
    """Words and pairs of words.

    Raises:
        BaselineLibraryMissing: scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        raise BaselineLibraryMissing("scikit-learn is not installed") from error
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=1, token_pattern=_WORD)


def word_and_letter_features() -> Any:
    """Words, pairs of words, and runs of three to five letters within words.

    Raises:
        BaselineLibraryMissing: scikit-learn is not installed.
    """
    words = word_features()
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, min_df=3)
    return FeatureUnion([("words", words), ("letters", letters)])

"""The words a text is found by: Latin words and numbers as they are, Chinese as pairs of neighbouring characters.

Chinese has no spaces; pairs find 销售额 in 上季度销售额 without a dictionary. A lone character is a term too.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from tools.text.tokens import Token, lower, tokenise
from tools.text.wordlists import ordinary_words


def index_terms(text: str) -> list[str]:
    """Terms under which `text` is stored: every character, pair and word of it, so that all of them find it."""
    return list(_terms(tokenise(_folded(text)), singles=True))


def query_terms(text: str) -> list[str]:
    """Distinct terms to look for, without words such as "which" and "the" unless there are only such.

    A Chinese character is looked for by itself only where it has no neighbour to form a pair with.
    """
    terms = list(dict.fromkeys(_terms(tokenise(_folded(text)), singles=False)))
    telling = [term for term in terms if term not in _ordinary()]
    return telling or terms


@cache
def _ordinary() -> frozenset[str]:
    return frozenset(ordinary_words())


def match_expression(terms: Sequence[str]) -> str:
    """An FTS5 expression that finds any of `terms`; each is quoted, so none can act as an operator."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def _folded(text: str) -> str:
    return lower(unicodedata.normalize("NFKC", text))


def _terms(tokens: Sequence[Token], *, singles: bool) -> Iterator[str]:
    for index, token in enumerate(tokens):
        if token.kind == "sign":
            continue
        if token.kind != "han":
            yield token.text
            continue
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        has_pair = _adjoin(token, after)
        if has_pair and after is not None:
            yield token.text + after.text
        if singles or not (has_pair or _adjoin(before, token)):
            yield token.text


def _adjoin(left: Token | None, right: Token | None) -> bool:
    return (
        left is not None
        and right is not None
        and left.kind == "han"
        and right.kind == "han"
        and left.end == right.start
    )

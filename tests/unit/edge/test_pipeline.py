"""The document pipeline: names of observations, what is remembered, what comes back from its file."""

import os

import pytest

from edge import pipeline as subject
from edge.pipeline import DocumentPipeline, FileUnreadable
from tools.document.reader import ScannedDocument
from tools.document.reading import DocumentReading, content_hash
from tools.images.errors import ImageTooLarge


class CountingReader:
    """Reads any bytes as a document without pages and counts how often it read a whole one."""

    def __init__(self):
        self.opened = []

    def open(self, data, name):
        self.opened.append(name)
        return self._scan(DocumentReading(name=name, sha256=content_hash(data), media_type="image/png", pages=()))

    def reopen(self, data, reading):
        assert content_hash(data) == reading.sha256
        return self._scan(reading)

    def _scan(self, reading):
        return ScannedDocument(reader=self, file=None, reading=reading, crops=())


@pytest.fixture
def made(tmp_path):
    reader = CountingReader()
    return reader, DocumentPipeline(reader, device_id="pi-1", folder=tmp_path)


def _file(folder, name, content=b"a page"):
    path = folder / name
    path.write_bytes(content)
    return path


def test_the_same_file_is_the_same_observation_and_another_is_not(made, tmp_path):
    _, pipeline = made
    path = _file(tmp_path, "a.png")
    first = pipeline.see(path)
    assert pipeline.see(path).observation_id == first.observation_id
    others = {
        pipeline.see(_file(tmp_path, "b.png")).observation_id,
        pipeline.see(_file(tmp_path, "a.png", b"another")).observation_id,
        DocumentPipeline(CountingReader(), device_id="pi-2").see(_file(tmp_path, "a.png")).observation_id,
    }
    assert len(others | {first.observation_id}) == 4
    assert pipeline.see(path, observation_id="given").observation_id == "given"


def test_a_document_read_long_ago_is_taken_up_without_reading_it_again(made, tmp_path):
    reader, pipeline = made
    seen = [pipeline.see(_file(tmp_path, f"{number}.png", bytes([number]))) for number in range(10)]
    assert len(pipeline._scans) == subject._KEPT_FILES
    oldest = seen[0].scan.reading
    assert pipeline.document(oldest.sha256).reading is oldest
    assert reader.opened == [f"{number}.png" for number in range(10)]


def test_what_is_remembered_is_bounded(made, tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "_KEPT_READINGS", 3)
    _, pipeline = made
    for number in range(10):
        pipeline.see(_file(tmp_path, "a.png", bytes([number])))
    assert len(pipeline._known) == 3


def test_after_a_restart_the_document_is_found_by_its_content(made, tmp_path):
    _file(tmp_path, "other.png", b"another page")
    _file(tmp_path, "notes.txt")
    _file(tmp_path, "renamed.png")
    reader, pipeline = made
    assert pipeline.document(content_hash(b"a page")).reading.name == "renamed.png"
    assert reader.opened == ["renamed.png"]


def test_a_document_that_was_moved_is_found_and_one_that_changed_is_gone(made, tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "_KEPT_FILES", 0)
    reader, pipeline = made
    path = _file(tmp_path, "a.png")
    sha256 = pipeline.see(path).scan.reading.sha256
    path.rename(tmp_path / "moved.png")
    assert pipeline.document(sha256).reading.name == "a.png"
    _file(tmp_path, "moved.png", b"overwritten")
    assert pipeline.document(sha256) is None
    (tmp_path / "moved.png").unlink()
    tmp_path.rmdir()
    assert pipeline.document(sha256) is None
    assert reader.opened == ["a.png"]


def test_files_that_cannot_be_read_are_typed_errors(made, tmp_path, monkeypatch):
    _, pipeline = made
    with pytest.raises(FileUnreadable, match=r"none\.png cannot be read: No such file"):
        pipeline.see(tmp_path / "none.png")
    with pytest.raises(FileUnreadable, match="Is a directory"):
        pipeline.see(tmp_path)
    monkeypatch.setattr(subject, "MAX_FILE_BYTES", 3)
    with pytest.raises(ImageTooLarge, match="more than 3 bytes"):
        pipeline.see(_file(tmp_path, "large.png"))


def test_a_name_that_is_no_utf_8_can_be_sent(made, tmp_path):
    _, pipeline = made
    seen = pipeline.see(_file(tmp_path, os.fsdecode(b"a\xff.png")))
    assert seen.scan.reading.name.encode() == "a\ufffd.png".encode()

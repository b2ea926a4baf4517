"""The folder source: complete files once, also over restarts and jumping clocks."""

import os

from edge.watching import STATE_FILE, FolderSource


def _file(folder, name, *, modified_s):
    path = folder / name
    path.write_bytes(name.encode())
    os.utime(path, (modified_s, modified_s))
    return path


def _names(source, now_s):
    return [found.path.name for found in source.new_files(now_s=now_s)]


def test_reports_documents_oldest_first_and_nothing_else(tmp_path):
    _file(tmp_path, "b.pdf", modified_s=50)
    _file(tmp_path, "a.PNG", modified_s=60)
    _file(tmp_path, "notes.txt", modified_s=50)
    _file(tmp_path, ".hidden.png", modified_s=50)
    (tmp_path / "folder.png").mkdir()
    assert _names(FolderSource(tmp_path), 100) == ["b.pdf", "a.PNG"]


def test_waits_for_a_file_that_is_still_written(tmp_path):
    _file(tmp_path, "a.png", modified_s=100)
    source = FolderSource(tmp_path)
    assert _names(source, 100.5) == []
    assert _names(source, 101.5) == ["a.png"]


def test_a_file_from_the_future_is_not_waited_for(tmp_path):
    _file(tmp_path, "a.png", modified_s=5000)
    assert _names(FolderSource(tmp_path), 100) == ["a.png"]


def test_handled_files_stay_handled_over_a_restart(tmp_path):
    _file(tmp_path, "a.png", modified_s=50)
    source = FolderSource(tmp_path)
    (found,) = source.new_files(now_s=100)
    source.handled(found, "task-1")
    assert _names(source, 100) == []
    assert _names(FolderSource(tmp_path), 100) == []


def test_a_changed_file_is_new(tmp_path):
    _file(tmp_path, "a.png", modified_s=50)
    source = FolderSource(tmp_path)
    (found,) = source.new_files(now_s=100)
    source.handled(found, "task-1")
    _file(tmp_path, "a.png", modified_s=60)
    assert _names(source, 100) == ["a.png"]


def test_a_broken_state_file_means_reading_again(tmp_path):
    _file(tmp_path, "a.png", modified_s=50)
    (tmp_path / STATE_FILE).write_text('{"a.png')
    assert _names(FolderSource(tmp_path), 100) == ["a.png"]

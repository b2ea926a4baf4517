"""The folder source: complete files once, also over restarts and jumping clocks."""

import os

import pytest

from edge.watching import STATE_FILE, FolderSource, Found


def _file(folder, name, *, modified_s):
    path = folder / name
    path.write_bytes(os.fsencode(name))
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


def test_a_torn_line_of_the_state_spoils_no_other(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        _file(tmp_path, name, modified_s=50)
    source = FolderSource(tmp_path)
    first, second, _ = source.new_files(now_s=100)
    source.handled(first, "task-1")
    state = tmp_path / STATE_FILE
    state.write_bytes(state.read_bytes() + b'\n{"mark": "b.p')
    restarted = FolderSource(tmp_path)
    assert _names(restarted, 100) == ["b.png", "c.png"]
    restarted.handled(second, "task-2")
    assert _names(FolderSource(tmp_path), 100) == ["c.png"]


def test_one_line_is_written_a_file_and_old_ones_go_at_a_restart(tmp_path):
    source = FolderSource(tmp_path)
    kept = _file(tmp_path, "kept.png", modified_s=50)
    (found,) = source.new_files(now_s=100)
    source.handled(found, "task-1")
    for number in range(1001):
        source.handled(Found(path=tmp_path / "gone.png", mark=f"gone{number}.png:1:1"), "task")
    before = (tmp_path / STATE_FILE).stat().st_size
    assert before < 100 * 1002
    assert _names(FolderSource(tmp_path), 100) == []
    assert (tmp_path / STATE_FILE).stat().st_size < before / 100
    kept.unlink()
    assert _names(FolderSource(tmp_path), 100) == []


def test_a_full_disk_is_an_os_error_and_the_file_stays_handled(tmp_path):
    _file(tmp_path, "a.png", modified_s=50)
    source = FolderSource(tmp_path)
    (found,) = source.new_files(now_s=100)
    (tmp_path / STATE_FILE).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        source.handled(found, "task-1")
    assert _names(source, 100) == []


def test_a_share_that_is_away_for_a_while_is_not_read_all_over_again(tmp_path):
    _file(tmp_path, "a.png", modified_s=50)
    source = FolderSource(tmp_path)
    (found,) = source.new_files(now_s=100)
    source.handled(found, "task-1")
    (tmp_path / "a.png").rename(tmp_path / "elsewhere")
    assert _names(source, 100) == []
    (tmp_path / "elsewhere").rename(tmp_path / "a.png")
    assert _names(source, 100) == []
    (tmp_path / "a.png").unlink()
    tmp_path.rename(tmp_path.with_name("away"))
    with pytest.raises(FileNotFoundError):
        source.new_files(now_s=100)


def test_a_name_that_is_no_utf_8_is_handled_like_any(tmp_path):
    _file(tmp_path, os.fsdecode(b"a\xff.png"), modified_s=50)
    source = FolderSource(tmp_path)
    (found,) = source.new_files(now_s=100)
    assert found.name == "a\ufffd.png"
    source.handled(found, "task-1")
    assert _names(FolderSource(tmp_path), 100) == []

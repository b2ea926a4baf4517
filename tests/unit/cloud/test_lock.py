import subprocess
import sys
from pathlib import Path

import pytest

from cloud.lock import DataDirectoryInUse, DataLock, is_locked
from podium.errors import InternalError


def test_a_directory_is_held_by_one_and_free_again_after_release(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "data")
    lock = DataLock.acquire(tmp_path / "data")
    assert is_locked(tmp_path / "data")
    with pytest.raises(DataDirectoryInUse):
        DataLock.acquire(tmp_path / "data")
    lock.release()
    assert not is_locked(tmp_path / "data")
    DataLock.acquire(tmp_path / "data").release()


def test_the_lock_goes_with_the_process_that_dies(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from cloud.lock import DataLock;"
        "DataLock.acquire(Path(sys.argv[1])); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert not is_locked(tmp_path)


def test_a_directory_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InternalError):
        DataLock.acquire(tmp_path / "file" / "data")

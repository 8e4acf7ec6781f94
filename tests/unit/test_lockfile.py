"""One owner per folder: refused with the pid, free again after a release and after kill -9."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strata.errors import DataDirInUse, InvalidConfig
from strata.lockfile import FolderLock

HOLDER = """
import sys, pathlib
from strata.lockfile import FolderLock
FolderLock(pathlib.Path(sys.argv[1]), "coordinator").acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_owner_is_refused_and_a_released_folder_is_free(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "new" / "folder", "coordinator")
    lock.acquire()
    with pytest.raises(DataDirInUse, match=f"in use by another coordinator, pid {os.getpid()}"):
        FolderLock(tmp_path / "new" / "folder", "coordinator").acquire()
    FolderLock(tmp_path / "new" / "folder", "observatory").acquire()
    lock.release()
    lock.release()
    FolderLock(tmp_path / "new" / "folder", "coordinator").acquire()


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(DataDirInUse, match=f"pid {holder.pid}"):
        FolderLock(tmp_path, "coordinator").acquire()
    holder.kill()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    assert (tmp_path / "coordinator.lock").exists(), "left behind, but it holds nothing"
    FolderLock(tmp_path, "coordinator").acquire()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidConfig, match="file cannot be used: ") as caught:
        FolderLock(tmp_path / "file", "coordinator").acquire()
    assert "--data-dir" in caught.value.hint

"""What a run says first: where its points are kept, and never that of a folder in which nobody can keep them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.worker.environment import find_place
from strata.worker.greeting import how_to_send

# Imported before the rights are given up: the interpreter may lie in a home that is closed to others.
AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from strata.errors import StorageAccessDenied
from strata.storage.local import LocalStore
from strata.worker.environment import find_place
from strata.worker.greeting import how_to_send

place = find_place()
os.geteuid() == 0 and os.setuid(65534)
print(how_to_send(place))
try:
    LocalStore(Path(sys.argv[1]) / "checkpoints" / "first").put("STRATA.json", b"{}")
except StorageAccessDenied as error:
    print(error.hint)
"""


@pytest.fixture
def closed() -> Iterator[Path]:
    """Everybody may look into it and nobody but root may write; not below tmp_path, which others cannot enter."""
    folder = Path(tempfile.mkdtemp(prefix="strata-closed-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o700)
    folder.rmdir()


def test_the_folder_and_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "not" / "yet"))
    assert how_to_send(find_place()).startswith(f"its points are kept in {tmp_path}/not/yet/offline")


def test_below_a_file_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "file" / ".strata"))
    assert how_to_send(find_place()).startswith(
        f"its points cannot be kept either, as {tmp_path}/file cannot be written"
    )


def test_another_user_is_told_which_folder_is_in_the_way(closed: Path) -> None:
    words = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, str(closed)],
        env={**os.environ, "STRATA_DATA_DIR": str(closed / ".strata")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert words == [
        f"its points cannot be kept either, as {closed} cannot be written; STRATA_DATA_DIR names another folder",
        f"Give this user the right to read and write {closed}.",
    ]

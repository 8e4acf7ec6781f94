"""Folders that a framework writes, kept in the store and laid out again."""

from pathlib import Path

import pytest

import strata
from strata.integrations.folders import FolderStore


def _run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> strata.Run:
    monkeypatch.setenv("STRATA_DATA_DIR", str(folder / "data"))
    return strata.init(run_id="folders")


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_what_was_saved_is_laid_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "checkpoint-7"
    (source / "parts").mkdir(parents=True)
    (source / "model.bin").write_bytes(b"weights")
    (source / "parts" / "empty").touch()
    with _run(tmp_path, monkeypatch):
        store = FolderStore(tmp_path / "store")
        assert store.restore(lambda: None) is None
        store.save(source, [path for path in source.rglob("*") if path.is_file()], 7)
        (source / "model.bin").write_bytes(b"changed")  # what was saved does not change with it
        store.save(source, [source / "model.bin"], 7)  # the step is there
        store.close()
        again = FolderStore(tmp_path / "store")
        found = again.restore(lambda: None)
        assert found is not None
        step, folder = found
        assert step == 7
        assert _files(folder) == {"model.bin": b"weights", "parts/empty": b""}
        again.clear()
        assert not folder.parent.exists()
        again.close()

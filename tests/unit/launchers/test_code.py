"""A folder of code becomes the same archive wherever its files are the same, and is unpacked whole, or not at all."""

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from strata.errors import InvalidArgument
from strata.launchers import code as launcher_code
from strata.launchers.code import pack_code, remove_code, unpack_code


def _write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def _unpacked(root: Path, to: Path) -> list[str]:
    code = pack_code(root)
    unpack_code(code.data, code.digest, to)
    return sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file())


def test_the_same_files_have_the_same_hash_whoever_wrote_them_when(tmp_path: Path) -> None:
    first = _write(tmp_path / "a", train_py="x = 1", lib__model_py="y = 2")
    second = _write(tmp_path / "b", lib__model_py="y = 2", train_py="x = 1")
    os.utime(second / "train.py", (1, 1))
    assert pack_code(first).digest == pack_code(second).digest
    (second / "train.py").chmod(0o755)
    assert pack_code(first).digest != pack_code(second).digest, "whether a file is a program matters"


def test_what_git_ignores_stays_behind_and_so_do_secrets(tmp_path: Path) -> None:
    root = _write(tmp_path / "repo", train_py="1", new_py="2", data__big="3", inner__lib_py="4")
    (root / ".gitignore").write_text("data/\n")
    for name in (".env", ".strata"):
        (root / name).write_text("secret")
    _git(root, "init", "-q")
    _git(root / "inner", "init", "-q")
    _git(root, "add", "train.py", "new.py")
    (root / "new.py").unlink()
    assert _unpacked(root, tmp_path / "there") == [".gitignore", "inner/lib.py", "train.py"]


def test_outside_of_a_repository_only_the_usual_is_left_out(tmp_path: Path) -> None:
    root = _write(tmp_path / "plain", train_py="1", node_modules__x="2", pkg__a_py="3")
    (root / "pkg" / "__pycache__").mkdir()
    (root / "pkg" / "__pycache__" / "a.pyc").write_text("x")
    (root / "near").symlink_to("pkg")
    (root / "far.py").symlink_to(tmp_path / "elsewhere.py")
    (tmp_path / "elsewhere.py").write_text("far = 1")
    assert _unpacked(root, tmp_path / "there") == ["far.py", "pkg/a.py", "train.py"]
    assert (tmp_path / "there" / "near" / "a.py").read_text() == "3"
    assert not (tmp_path / "there" / "far.py").is_symlink(), "what it led to went along"


def test_a_link_to_a_folder_elsewhere_is_named(tmp_path: Path) -> None:
    root = _write(tmp_path / "plain", train_py="1")
    (root / "data").symlink_to("/usr")
    with pytest.raises(InvalidArgument, match="leads to /usr, which does not go along"):
        pack_code(root)


def test_too_much_is_refused_with_its_largest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_code, "MAX_ARCHIVE_BYTES", 1_000)
    root = _write(tmp_path / "plain", train_py="1")
    (root / "weights.bin").write_bytes(os.urandom(5_000))
    with pytest.raises(InvalidArgument, match=r"its largest files: weights.bin \(0.0 MB\), train.py") as refused:
        pack_code(root)
    assert ".gitignore" in refused.value.hint


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_with_nothing_is_refused(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "empty"
    if made:
        folder.mkdir()
    with pytest.raises(InvalidArgument, match=r"to send along"):
        pack_code(folder)


def test_what_is_unpacked_is_read_only_and_can_be_removed(tmp_path: Path) -> None:
    _unpacked(_write(tmp_path / "plain", train_py="1", lib__a_py="2"), tmp_path / "there")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "there").rglob("*")}
    assert modes == {0o500, 0o400}
    remove_code(tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def _archive(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        archive.addfile(entry)
    return packed.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        _archive("../outside.py"),
        _archive("link", tarfile.SYMTYPE, "/etc/passwd"),
        _archive("device", tarfile.CHRTYPE),
    ],
    ids=["no-archive", "outside", "link", "device"],
)
def test_bytes_that_are_no_code_leave_nothing_behind(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / "code" / "there"
    with pytest.raises(InvalidArgument, match="cannot be unpacked"):
        unpack_code(data, hashlib.sha256(data).hexdigest(), folder)
    assert list(folder.parent.iterdir()) == []


def test_bytes_of_another_hash_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has another hash"):
        unpack_code(b"x", "0" * 64, tmp_path / "there")
    assert list(tmp_path.iterdir()) == []

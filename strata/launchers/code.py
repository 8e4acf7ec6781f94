"""A folder of code as one archive, and back: the same files give the same bytes, so that the archive's hash names them.
What Git ignores stays behind, and so do secrets and the data folder of Strata.
"""

import gzip
import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from strata.errors import InvalidArgument
from strata.types.code import MAX_ARCHIVE_BYTES

__all__ = ["Code", "pack_code", "remove_code", "unpack_code"]

_MAX_BYTES = 8 * MAX_ARCHIVE_BYTES  # of its files
_LEFT_OUT = frozenset({".env", ".git", ".strata", ".venv", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Code:
    """An archive, its SHA-256, and how many files are in it."""

    digest: str
    num_files: int
    data: bytes = field(repr=False)


def pack_code(root: Path) -> Code:
    """All files below `root` but those that Git ignores; outside of a repository, all but virtualenvs, caches and the
    like."""
    if not root.is_dir():
        raise InvalidArgument(f"there is no folder {root} to send along")
    names = sorted(set(_files(root)))
    if not names:
        raise InvalidArgument(f"the folder {root} holds no file to send along", hint="Does .gitignore name them all?")
    _check_size(root, names, sum((root / name).lstat().st_size for name in names), _MAX_BYTES)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in names:
            _add(archive, root, name)
    data = packed.getvalue()
    _check_size(root, names, len(data), MAX_ARCHIVE_BYTES)
    return Code(hashlib.sha256(data).hexdigest(), len(names), data)


def _files(root: Path) -> Iterator[str]:
    """Paths of files and links relative to `root`."""
    listed = _git_files(root)
    for name in _walked(root) if listed is None else listed:
        if _LEFT_OUT & set(PurePosixPath(name).parts):
            continue
        path = root / name
        if path.is_dir() and not path.is_symlink():  # a repository inside this one
            yield from (f"{name.rstrip('/')}/{inner}" for inner in _files(path))
        elif path.is_symlink() or path.is_file():  # what was deleted is still in Git's index; sockets are no code
            yield name


def _git_files(root: Path) -> list[str] | None:
    """What Git tracks or would; None where there is no repository, or no Git."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else None


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in (*files, *links))


def _add(archive: tarfile.TarFile, root: Path, name: str) -> None:
    """With nothing of the file's owner and time. A link stays one where it leads to a place that goes along."""
    path, entry = root / name, tarfile.TarInfo(name)
    if path.is_symlink():
        target = path.readlink()
        if not target.is_absolute() and path.resolve().is_relative_to(root.resolve()):
            entry.type, entry.linkname = tarfile.SYMTYPE, str(target)
            archive.addfile(entry)
            return
        if not path.is_file():
            raise InvalidArgument(
                f"the link {path} leads to {target}, which does not go along",
                hint="Have it ignored (.gitignore), and name the place itself in the script.",
            )
    content = path.read_bytes()
    entry.size, entry.mode = len(content), 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
    archive.addfile(entry, io.BytesIO(content))


def _check_size(root: Path, names: list[str], size: int, limit: int) -> None:
    if size <= limit:
        return
    largest = sorted(names, key=lambda name: (root / name).lstat().st_size, reverse=True)[:3]
    shown = ", ".join(f"{name} ({(root / name).lstat().st_size / 1e6:.1f} MB)" for name in largest)
    raise InvalidArgument(
        f"the code in {root} has {size / 1e6:.0f} MB, {limit / 1e6:.0f} are allowed; its largest files: {shown}",
        hint="Have data and results ignored (.gitignore): they belong into a shared folder or a bucket.",
    )


def unpack_code(data: bytes, digest: str, folder: Path) -> None:
    """Puts the files into `folder`, read-only, all of them or none. Raises InvalidArgument for bytes that are not those
    of the hash, or that hold what no archive of ours does."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise InvalidArgument(f"what came as code {digest} has another hash")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".fresh-", dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            members = archive.getmembers()
            if sum(member.size for member in members) > _MAX_BYTES:
                raise InvalidArgument(f"code {digest} unpacks to more than {_MAX_BYTES} bytes")
            archive.extractall(fresh, members, filter="data")
        _set_modes(fresh, 0o500)
        fresh.rename(folder)
    except (tarfile.TarError, EOFError) as error:
        raise InvalidArgument(f"code {digest} cannot be unpacked: {error}") from None
    finally:
        if fresh.exists():
            remove_code(fresh)


def remove_code(folder: Path) -> None:
    """Removes what was unpacked."""
    _set_modes(folder, 0o700)
    shutil.rmtree(folder)


def _set_modes(root: Path, of_folders: int) -> None:
    """Of folders this one; files are read-only in any case, for whoever unpacked them."""
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o700)
        for path in (Path(folder) / name for name in files):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o500)
    for folder, _, _ in os.walk(root, topdown=False):
        Path(folder).chmod(of_folders)

"""Where data files are: local paths and globs, or a bucket. Lists them, opens them, and hands out local copies."""

import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from glob import glob, has_magic
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Protocol

from strata.data.files.cache import LocalCache
from strata.errors import DataError, StorageNotFound
from strata.storage import ObjectStore, StoredObject, open_store

__all__ = ["BucketFiles", "DataFiles", "FileRef", "LocalFiles", "files_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """One data file. `version` changes when its content may have changed; `name` is its place inside the dataset."""

    uri: str
    name: str
    size: int
    version: str

    @property
    def key(self) -> str:
        """A safe file name for anything kept about this version of the file."""
        return blake2b(f"{self.uri}\0{self.size}\0{self.version}".encode(), digest_size=16).hexdigest()


class DataFiles(Protocol):
    """The whole surface a place for data must have. All calls block and may come from several threads."""

    def list(self) -> tuple[FileRef, ...]:
        """The files, sorted by name. DataError when there are none."""
        ...

    def open(self, ref: FileRef) -> BinaryIO:
        """A seekable stream that fetches only what is read: for footers and headers."""
        ...

    def fetch(self, ref: FileRef) -> Path:
        """The whole file on a local disk, through the cache when it is far away."""
        ...


class LocalFiles:
    """Paths, folders and globs on this machine."""

    def __init__(self, patterns: Sequence[str], suffixes: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._suffixes = tuple(suffixes)

    def list(self) -> tuple[FileRef, ...]:
        found: dict[str, Path] = {}
        for pattern in self._patterns:
            matched = self._matches(pattern)
            if not matched:
                raise DataError(f"no data file matches {pattern!r}", file=pattern, hint="Check the path or the glob.")
            found.update((str(path), path) for path in matched)
        paths = [found[key] for key in sorted(found)]
        root = Path(os.path.commonpath([path.parent for path in paths]))
        return tuple(self._ref(path, root) for path in paths)

    def open(self, ref: FileRef) -> BinaryIO:
        return Path(ref.uri).open("rb")

    def fetch(self, ref: FileRef) -> Path:
        return Path(ref.uri)

    def _matches(self, pattern: str) -> "Sequence[Path]":
        if has_magic(pattern):
            return [Path(name).absolute() for name in glob(pattern, recursive=True) if Path(name).is_file()]  # noqa: PTH207  # the pattern may be absolute
        path = Path(pattern).absolute()
        if path.is_dir():
            return [
                child
                for child in path.rglob("*")
                if child.is_file()
                and child.name.endswith(self._suffixes or "")
                and not child.name.startswith((".", "_"))
            ]
        return [path] if path.is_file() else []

    def _ref(self, path: Path, root: Path) -> FileRef:
        status = path.stat()
        name = path.relative_to(root).as_posix()
        return FileRef(uri=str(path), name=name, size=status.st_size, version=str(status.st_mtime_ns))


class BucketFiles:
    """Objects of a bucket, by `s3://bucket/prefix/*.parquet` or a prefix; whole files go through the local cache."""

    def __init__(self, uri: str, suffixes: Sequence[str], cache: LocalCache, store: ObjectStore | None = None) -> None:
        scheme, _, rest = uri.partition("://")
        parts = rest.split("/")
        fixed = next((number for number, part in enumerate(parts) if has_magic(part)), len(parts))
        single = fixed == len(parts) and parts[-1].endswith(tuple(suffixes)) and len(parts) > 1
        fixed -= single
        self._root = f"{scheme}://{'/'.join(parts[:fixed])}".rstrip("/")
        self._pattern = _compiled("/".join(parts[fixed:]) or "**", suffixes if fixed == len(parts) else ())
        self._uri = uri
        self._cache = cache
        self._store = open_store(self._root) if store is None else store

    def list(self) -> tuple[FileRef, ...]:
        found = [item for item in self._walk("") if self._pattern.fullmatch(item.key)]
        if not found:
            raise DataError(f"no object matches {self._uri!r}", file=self._uri, hint="Check the bucket and the prefix.")
        return tuple(
            FileRef(uri=f"{self._root}/{item.key}", name=item.key, size=item.size, version=str(item.modified_at))
            for item in sorted(found, key=lambda item: item.key)
        )

    def open(self, ref: FileRef) -> BinaryIO:
        return io.BufferedReader(_RangeReader(self._store, ref), buffer_size=1 << 16)

    def fetch(self, ref: FileRef) -> Path:
        return self._cache.get(ref.key, ref.size, partial(_read_range, self._store, ref))

    def _walk(self, prefix: str) -> Iterator[StoredObject]:
        listing = self._store.list(prefix)
        yield from listing.objects
        for folder in listing.folders:
            yield from self._walk(folder)


class _RangeReader(io.RawIOBase):
    """Range requests as a stream. Small, and only for footers and headers: bodies are fetched whole."""

    def __init__(self, store: ObjectStore, ref: FileRef) -> None:
        self._store, self._ref, self._at = store, ref, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._ref.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]  # Buffer is 3.12's name
        wanted = memoryview(buffer)[: max(self._ref.size - self._at, 0)]
        count = _read_range(self._store, self._ref, self._at, wanted) if wanted else 0
        self._at += count
        return count


def _read_range(store: ObjectStore, ref: FileRef, offset: int, buffer: memoryview) -> int:
    try:
        return store.read_into(ref.name, offset, [buffer])
    except StorageNotFound as error:
        raise DataError(f"{ref.uri} is gone: it was there when the dataset was listed", file=ref.uri) from error


def _compiled(pattern: str, suffixes: Sequence[str]) -> re.Pattern[str]:
    """A glob over keys: ** crosses folders, * and ? do not."""
    text = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    text = text.replace(r"\?", "[^/]").replace(r"\[", "[").replace(r"\]", "]")
    return re.compile(text + (f"(?:{'|'.join(map(re.escape, suffixes))})" if suffixes else ""))


def files_for(patterns: Sequence[str], suffixes: Sequence[str], cache: LocalCache) -> DataFiles:
    """The place that these patterns name. Local patterns may be many; a bucket is named by one."""
    # A variable that was not set. As a path it would be the working folder and all below it.
    if "" in patterns or "file://" in patterns:
        raise DataError("a path of the data is empty", file="", hint="Name a file, a folder (here: .) or a glob.")
    remote = [pattern for pattern in patterns if "://" in pattern and not pattern.startswith("file://")]
    if not remote:
        return LocalFiles([pattern.removeprefix("file://") for pattern in patterns], suffixes)
    if len(patterns) > 1:
        raise DataError("files in buckets are named by one pattern", file=remote[0], hint="Use a glob over one prefix.")
    return BucketFiles(remote[0], suffixes, cache)

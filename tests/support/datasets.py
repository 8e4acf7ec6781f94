"""Small datasets of every format: rows numbered from 0 through all files, with a text and, where it fits, a vector."""

import csv
import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

__all__ = ["Dataset", "cache_home", "dataset", "make_dataset", "parquet"]

SIZES = (40, 7, 63, 30)

Write = Callable[[Path, range], None]


def write_parquet(path: Path, ids: range) -> None:
    vectors = np.repeat(np.array(ids, dtype=np.int32), 4)
    table = pa.table(
        {
            "id": np.array(ids),
            "text": [f"row {number}" for number in ids],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
        }
    )
    pq.write_table(table, path, row_group_size=max(9, len(ids) // 20))


def write_jsonl(path: Path, ids: range) -> None:
    rows = [{"id": number, "text": f"row {number}", "vector": [number] * 4} for number in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_csv(path: Path, ids: range) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([number, f"row {number}"] for number in ids)


def write_tar(path: Path, ids: range) -> None:
    with tarfile.open(path, "w") as tar:
        for number in ids:
            for extension, data in (("id", str(number)), ("txt", f"row {number}")):
                member = tarfile.TarInfo(f"part/{number:06}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data.encode()))


def write_npz(path: Path, ids: range) -> None:
    np.savez(path, id=np.array(ids), vector=np.repeat(np.array(ids), 4).reshape(-1, 4))


def write_mds(path: Path, ids: range) -> None:
    """As MosaicML streaming writes it: header of offsets, then per sample the variable sizes and the values."""
    samples = []
    for number in ids:
        text = f"row {number}".encode()
        samples.append(
            struct.pack("<I", len(text)) + struct.pack("<q", number) + text + np.full(4, number, "<i4").tobytes()
        )
    start = 4 * (len(samples) + 2)
    offsets = np.cumsum([start, *map(len, samples)], dtype=np.uint32)
    path.write_bytes(struct.pack("<I", len(samples)) + offsets.tobytes() + b"".join(samples))
    index = path.parent / "index.json"
    known = json.loads(index.read_text())["shards"] if index.exists() else []
    entry = {
        "column_names": ["id", "text", "vector"],
        "column_encodings": ["int", "str", "ndarray:int32:4"],
        "column_sizes": [8, None, 16],
        "raw_data": {"basename": path.name},
        "samples": len(samples),
    }
    index.write_text(json.dumps({"version": 2, "shards": [*known, entry]}))


WRITERS: dict[str, tuple[str, Write]] = {
    "csv": (".csv", write_csv),
    "jsonl": (".jsonl", write_jsonl),
    "mds": (".mds", write_mds),
    "npy": (".npz", write_npz),
    "parquet": (".parquet", write_parquet),
    "tar": (".tar", write_tar),
}


class Dataset:
    """Files of one format in a folder of their own, and the glob that names them."""

    def __init__(self, folder: Path, form: str) -> None:
        self.format = form
        self.folder = folder
        self.suffix, self.write = WRITERS[form]
        self.glob = str(folder / f"*{self.suffix}")
        self.num_samples = 0

    def add(self, rows: int) -> Path:
        path = self.folder / f"part-{len(list(self.folder.glob('*' + self.suffix)))}{self.suffix}"
        self.write(path, range(self.num_samples, self.num_samples + rows))
        self.num_samples += rows
        return path


@pytest.fixture(params=sorted(WRITERS))
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    """The same 140 rows in each format."""
    made = Dataset(tmp_path, request.param)
    for size in SIZES:
        made.add(size)
    return made


@pytest.fixture
def parquet(tmp_path: Path) -> Dataset:
    made = Dataset(tmp_path, "parquet")
    for size in SIZES:
        made.add(size)
    return made


@pytest.fixture
def make_dataset(tmp_path: Path) -> Callable[[str], Dataset]:
    return lambda form: Dataset(tmp_path, form)


@pytest.fixture(autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is written to the user's cache."""
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home

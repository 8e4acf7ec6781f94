"""What single formats can get wrong; what all of them share is in tests/contract/test_readers.py."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.data import Loader, build_manifest
from strata.errors import DataError

if TYPE_CHECKING:
    from tests.support.datasets import Dataset

Make = Callable[[str], "Dataset"]


def read_ids(loader: Loader) -> list[int]:
    return sorted(number for batch in loader for number in batch["id"].tolist())


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data file matches"):
        Loader(str(tmp_path / "*.parquet"), 8)


def test_a_folder_is_its_files(parquet: "Dataset") -> None:
    (parquet.folder / "_SUCCESS").touch()
    assert read_ids(Loader(parquet.folder, 8, format="parquet")) == list(range(140))


def test_parquet_schema_drift_names_file_column_and_types(parquet: "Dataset") -> None:
    path = parquet.folder / "part-9.parquet"
    table = pq.read_table(parquet.folder / "part-0.parquet")
    pq.write_table(table.set_column(0, "id", pa.array([1.5] * len(table))), path)
    with pytest.raises(DataError, match=r"part-9.parquet: column 'id' is double, but int64 in .*part-0.parquet"):
        Loader(parquet.glob, 8)
    pq.write_table(table.rename_columns(["number", "text", "vector"]), path)
    with pytest.raises(DataError, match="'id', 'number' is in only one of them"):
        Loader(parquet.glob, 8)
    assert len(list(Loader(parquet.glob, 60, columns=("text",)))) == 3


def test_parquet_footers_are_all_that_a_manifest_reads(parquet: "Dataset") -> None:
    """The data pages of every file are destroyed: the manifest does not notice, a read does."""
    for path in parquet.folder.glob("*.parquet"):
        data = bytearray(path.read_bytes())
        footer = int.from_bytes(data[-8:-4], "little") + 8
        data[4 : len(data) - footer] = b"\xff" * (len(data) - footer - 4)
        path.write_bytes(data)
    assert build_manifest(parquet.glob).num_samples == 140
    with pytest.raises(DataError, match=r"row group \d+ \(from row \d+\)"):
        list(Loader(parquet.glob, 8))


def test_parquet_nulls_in_integers_are_refused_with_their_row(make_dataset: Make) -> None:
    folder = make_dataset("parquet").folder
    pq.write_table(pa.table({"id": pa.array([1, None, 3])}), folder / "a.parquet")
    with pytest.raises(DataError, match="'id' is int64 and has nulls, first in row 1") as failure:
        list(Loader(str(folder / "*.parquet"), 8))
    assert failure.value.row == 1


def test_parquet_types(make_dataset: Make) -> None:
    folder = make_dataset("parquet").folder
    table = pa.table(
        {
            "id": [0, 1, 2],
            "half": pa.array([0.5, None, 1.5], pa.float32()),
            "flag": [True, False, True],
            "name": pa.array(["a", None, "c"]).dictionary_encode(),
            "raw": [b"x", b"yy", b""],
            "ragged": [[1], [2, 3], []],
            "square": [[1, 2], [3, 4], [5, 6]],
            "nested": [{"a": 1}, {"a": 2}, None],
            "when": pa.array([0, 1, 2], pa.timestamp("s")),
        }
    )
    pq.write_table(table, folder / "a.parquet")
    batch = next(iter(Loader(str(folder / "*.parquet"), 3, shuffle=False)))
    assert batch["half"].dtype == np.float32
    assert np.isnan(batch["half"][1])
    assert batch["flag"].tolist() == [True, False, True]
    assert batch["name"].tolist() == ["a", None, "c"]
    assert batch["raw"].tolist() == [b"x", b"yy", b""]
    assert [value.tolist() for value in batch["ragged"]] == [[1], [2, 3], []]
    assert batch["square"].shape == (3, 2)
    assert batch["nested"].tolist() == [{"a": 1}, {"a": 2}, None]
    assert batch["when"].dtype == np.dtype("datetime64[ms]")


def test_jsonl_names_the_bad_row_and_can_skip_it(make_dataset: Make) -> None:
    made = make_dataset("jsonl")
    path = made.add(10)
    lines = path.read_text().splitlines()
    lines[4] = '{"id": 4, "text": '
    lines[7] = '{"id": "seven", "text": "x", "vector": [1]}'
    path.write_text("\n".join(lines) + "\n\n")
    made.add(5)
    with pytest.raises(DataError, match="row 4 is not JSON") as failure:
        list(Loader(made.glob, 4))
    assert (failure.value.file, failure.value.row) == (str(path), 4)


def test_jsonl_skips_single_rows_after_the_first_block(make_dataset: Make) -> None:
    made = make_dataset("jsonl")
    path = made.add(30_000)
    lines = path.read_text().splitlines()
    lines[29_000], lines[29_500] = "{", '{"id": null, "text": "x", "vector": [1]}'
    path.write_text("\n".join(lines))
    loader = Loader(made.glob, 1000, on_error="skip")
    assert read_ids(loader) == [number for number in range(30_000) if number not in (29_000, 29_500)]
    assert loader.stats.num_skipped == 2
    with pytest.raises(DataError, match=r"row 29000 is not JSON"):
        list(Loader(made.glob, 1000, shuffle=False))


def test_jsonl_numbers_may_grow_from_file_to_file(make_dataset: Make) -> None:
    folder = make_dataset("jsonl").folder
    (folder / "a.jsonl").write_text('{"x": 1, "when": "2024-01-01"}\n')
    (folder / "b.jsonl").write_text('{"x": 1.5, "when": "soon"}\n')
    batch = next(iter(Loader(str(folder / "*.jsonl"), 2, shuffle=False)))
    assert batch["x"].tolist() == [1.0, 1.5]
    assert batch["when"].tolist() == ["2024-01-01", "soon"]


def test_csv_keeps_line_ends_inside_quotes(make_dataset: Make) -> None:
    folder = make_dataset("csv").folder
    rows = [f'{number},"line one\nline ""two"", {"x" * 50}"' for number in range(40_000)]
    (folder / "a.csv").write_text("id,text\r\n" + "\r\n".join(rows) + "\r\n\r\n", newline="")
    manifest = build_manifest(str(folder / "*.csv"))
    assert manifest.num_samples == 40_000
    assert manifest.num_blocks > 1
    batch = next(iter(Loader(manifest, 3, shuffle=False)))
    assert batch["id"].tolist() == [0, 1, 2]
    assert batch["text"][0].startswith('line one\nline "two", xx')
    assert read_ids(Loader(manifest, 5000)) == list(range(40_000))


def test_csv_names_the_bad_row_and_can_skip_it(make_dataset: Make) -> None:
    folder = make_dataset("csv").folder
    rows = [f"{number},{'x' * 40}" for number in range(60_000)]
    rows[50_000], rows[55_000] = "fifty,x", "1,2,3"
    (folder / "a.csv").write_text("id,text\n" + "\n".join(rows))
    with pytest.raises(DataError, match="'id' of row 50000 is 'fifty', not int64"):
        list(Loader(str(folder / "*.csv"), 1000, shuffle=False))
    loader = Loader(str(folder / "*.csv"), 1000, on_error="skip")
    assert len(read_ids(loader)) == 59_998
    assert loader.stats.num_skipped == 2


def test_tar_without_its_end_mark_is_truncated(make_dataset: Make) -> None:
    made = make_dataset("tar")
    path = made.add(10)
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data + b"\0" * (-len(data) % 512))
    with pytest.raises(DataError, match=r"breaks off after part/000009.txt: the end-of-archive mark is missing"):
        Loader(made.glob, 4)


def test_tar_sample_without_a_part_is_named_and_can_be_skipped(make_dataset: Make) -> None:
    import io
    import tarfile

    made = make_dataset("tar")
    path = made.folder / "part-0.tar"
    with tarfile.open(path, "w") as tar:
        for number, extensions in enumerate([("id", "txt"), ("id",), ("id", "txt")]):
            for extension in extensions:
                member = tarfile.TarInfo(f"{number}.{extension}")
                member.size = 1
                tar.addfile(member, io.BytesIO(str(number).encode()))
    with pytest.raises(DataError, match=r"sample '1' \(row 1\) has no .txt") as failure:
        list(Loader(made.glob, 4))
    assert failure.value.row == 1
    loader = Loader(made.glob, 4, on_error="skip")
    assert read_ids(loader) == [0, 2]
    assert loader.stats.num_skipped == 1


def test_npy_is_mapped_and_pickles_are_refused(make_dataset: Make) -> None:
    folder = make_dataset("npy").folder
    np.save(folder / "a.npy", np.arange(600_000).reshape(-1, 2))
    manifest = build_manifest(str(folder / "a.npy"))
    assert manifest.num_blocks > 1
    total = sum(int(batch["data"].sum()) for batch in Loader(manifest, 5000))
    assert total == 600_000 * 599_999 // 2
    np.save(folder / "b.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="no rows can be read"):
        build_manifest(str(folder / "b.npy"))


def test_npz_arrays_of_unequal_length_are_refused(make_dataset: Make) -> None:
    folder = make_dataset("npy").folder
    np.savez(folder / "a.npz", x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(DataError, match=r"differ in length: \{'x': 3, 'y': 4\}"):
        build_manifest(str(folder / "a.npz"))


def test_mds_refuses_pickled_columns(make_dataset: Make) -> None:
    made = make_dataset("mds")
    made.add(3)
    index = made.folder / "index.json"
    described = json.loads(index.read_text())
    described["shards"][0]["column_encodings"][1] = "pkl"
    index.write_text(json.dumps(described))
    with pytest.raises(DataError, match="encoding 'pkl', which is not supported"):
        list(Loader(made.glob, 4))
    assert read_ids(Loader(made.glob, 4, columns=("id",))) == [0, 1, 2]


def test_scanned_files_are_scanned_once(make_dataset: Make, cache_home: Path) -> None:
    made = make_dataset("jsonl")
    path = made.add(10)
    digest = build_manifest(made.glob).digest
    notes = list(cache_home.rglob("*.json"))
    assert len(notes) == 1
    assert build_manifest(made.glob).digest == digest
    path.write_text(path.read_text().replace("row 3", "row X"))
    assert build_manifest(made.glob).digest != digest, "a note outlived its file"

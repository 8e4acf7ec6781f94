"""Previews show the samples of a step, small, as plain JSON."""

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from strata.data import Loader, peek
from strata.data.preview import shown
from strata.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.datasets import Dataset


def jpeg(side: int = 300) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)).save(out, "JPEG")
    return out.getvalue()


def test_peek_shows_what_training_reads(dataset: "Dataset") -> None:
    loader = Loader(dataset.glob, 16)
    batches = list(loader)
    preview = peek(loader, n=5, epoch=0, position=32)
    assert [row["values"]["id"] for row in preview.rows] == batches[2]["id"][:5].tolist()
    assert preview.position == 32
    first = preview.rows[0]
    assert first["index"] == first["values"]["id"]
    assert first["file"].startswith("part-")
    json.dumps(preview.to_dict(), allow_nan=False)


def test_peek_reads_one_block_for_one_sample(parquet: "Dataset") -> None:
    preview = peek(parquet.glob, n=1, epoch=3, position=77, columns=("id",))
    assert list(preview.columns) == ["id"]
    assert len(preview.rows) == 1


def test_a_loader_shows_what_it_reads_now(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, 16, num_threads=0)
    assert loader.sample().rows == ()
    batch = next(iter(loader))
    assert [row["values"]["id"] for row in loader.sample(3).rows] == batch["id"][:3].tolist()


def test_rows_say_where_they_are_in_their_file(parquet: "Dataset") -> None:
    for row in peek(parquet.glob, n=20).rows:
        table = pq.read_table(parquet.folder / row["file"])
        assert table.column("id")[row["row"]].as_py() == row["index"]


def test_values_are_made_small() -> None:
    assert shown(np.int64(3)) == 3
    assert shown(float("nan")) == "nan"
    assert shown("x" * 1000)["text"].endswith("…")
    assert shown(b"\x00\x01")["hex"] == "0001"
    big = shown(np.arange(10_000).reshape(100, 100))
    assert big["shape"] == [100, 100]
    assert len(big["values"]) == 16
    assert shown({"a": [1, 2]}) == {"a": {"kind": "list", "size": 2, "values": [1, 2]}}


def test_images_become_thumbnails() -> None:
    found = shown(jpeg())
    assert (found["width"], found["height"], found["format"]) == (300, 300, "JPEG")
    assert found["thumbnail"].startswith("data:image/jpeg;base64,")
    assert len(found["thumbnail"]) < 12_000
    assert shown({"bytes": jpeg(), "path": None})["kind"] == "image"


def test_a_broken_image_says_so() -> None:
    assert "error" in shown(b"\xff\xd8\xff" + b"\0" * 50)


def test_images_in_parquet(tmp_path: "Path") -> None:
    pq.write_table(pa.table({"image": [jpeg()], "label": [7]}), tmp_path / "a.parquet")
    row = peek(str(tmp_path / "*.parquet"), n=1).rows[0]
    assert row["values"]["label"] == 7
    assert row["values"]["image"]["kind"] == "image"


def test_bad_places_are_refused(parquet: "Dataset") -> None:
    with pytest.raises(InvalidArgument, match="n must be"):
        peek(parquet.glob, n=0)
    with pytest.raises(InvalidArgument, match="position 140 is at the end"):
        peek(parquet.glob, position=140)
    with pytest.raises(InvalidArgument, match="position 200"):
        peek(parquet.glob, position=200)


def test_a_series_is_shown_whole_and_a_long_one_keeps_its_peaks() -> None:
    sine = np.sin(np.linspace(0, 10 * np.pi, 64))
    assert shown(sine)["values"] == sine.tolist()
    assert shown(sine.tolist())["values"] == sine.tolist()
    long = np.zeros(100_000)
    long[[12_345, 70_000, 99_999]] = 7.0, -5.0, np.nan
    values = shown(long)["values"]
    assert len(values) <= 400
    assert values.index(7.0) < values.index(-5.0)
    assert shown(long)["shape"] == [100_000]
    json.dumps(shown(long), allow_nan=False)

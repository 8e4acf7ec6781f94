"""One suite over every reader: what a Loader relies on, whatever the format. A new format adds a writer of sample files
to `WRITERS` in tests/support/datasets.py.
"""

import pytest

from strata.data import Loader, build_manifest
from strata.data.readers import FORMATS
from strata.errors import DataError
from tests.support.datasets import WRITERS, Dataset


def read_ids(loader: Loader) -> list[int]:
    return sorted(number for batch in loader for number in batch["id"].tolist())


def test_every_reader_is_in_this_suite() -> None:
    assert set(FORMATS) == set(WRITERS)


def test_every_row_comes_once_whatever_the_batch(dataset: Dataset) -> None:
    assert build_manifest(dataset.glob).num_samples == 140
    for batch_size in (1, 8, 140, 500):
        assert read_ids(Loader(dataset.glob, batch_size)) == list(range(140))


def test_rows_keep_their_columns_together(dataset: Dataset) -> None:
    for batch in Loader(dataset.glob, 8):
        for number, row in zip(batch["id"].tolist(), range(len(batch["id"])), strict=True):
            if "text" in batch:
                assert batch["text"][row] == f"row {number}"
            if "vector" in batch:
                assert list(batch["vector"][row]) == [number] * 4


def test_a_position_is_found_again(dataset: Dataset) -> None:
    whole = [batch["id"].tolist() for batch in Loader(dataset.glob, 8, seed=3)]
    loader = Loader(dataset.glob, 8, seed=3)
    batches = iter(loader)
    first = [next(batches)["id"].tolist() for _ in range(5)]
    again = Loader(dataset.glob, 8, seed=3)
    again.load_state_dict(loader.state_dict())
    assert first + [batch["id"].tolist() for batch in again] == whole


def test_a_corrupt_file_is_named(dataset: Dataset) -> None:
    path = dataset.add(20)
    path.write_bytes(b"\x00garbage" * 30)
    with pytest.raises(DataError) as failure:
        list(Loader(dataset.glob, 8))
    assert failure.value.file == str(path)
    assert str(path) in str(failure.value)


def test_a_corrupt_file_can_be_left_out_and_is_counted(dataset: Dataset) -> None:
    path = dataset.add(20)
    path.write_bytes(b"\x00garbage" * 30)
    loader = Loader(dataset.glob, 8, on_error="skip")
    assert read_ids(loader) == list(range(140))
    assert loader.stats.num_skipped == 1
    assert str(path) in loader.stats.last_errors[0]


def test_an_empty_file_is_an_error_or_counted(dataset: Dataset) -> None:
    path = dataset.add(0)
    with pytest.raises(DataError) as failure:
        Loader(dataset.glob, 8)
    assert failure.value.file == str(path)
    loader = Loader(dataset.glob, 8, on_error="skip")
    assert read_ids(loader) == list(range(140))
    assert loader.stats.num_skipped == 1


def test_a_truncated_file_is_named(dataset: Dataset) -> None:
    path = dataset.add(400)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3 - 3])
    with pytest.raises(DataError) as failure:
        list(Loader(dataset.glob, 8))
    assert failure.value.file == str(path)


def test_a_missing_column_names_the_file(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="has no column 'weight'") as failure:
        Loader(dataset.glob, 8, columns=("id", "weight"))
    assert failure.value.file
    assert "id" in failure.value.hint


def test_chosen_columns_only(dataset: Dataset) -> None:
    assert list(next(iter(Loader(dataset.glob, 8, columns=["id"])))) == ["id"]

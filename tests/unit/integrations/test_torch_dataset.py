"""StrataDataset under DataLoader and StatefulDataLoader: the same batches for every num_workers, resumable anywhere."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402  # only where torch is

from strata.data import Loader  # noqa: E402  # as above
from strata.integrations.torch import StrataDataset  # noqa: E402  # as above

pytestmark = [
    pytest.mark.torch,
    # Four workers on a small machine are the point here.
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    # torchdata 0.11 calls what torch 2.13 has deprecated.
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning"),
]

BATCH = 12


@pytest.fixture
def glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    start = 0
    for number, size in enumerate((40, 7, 63, 30)):
        ids = np.arange(start, start + size)
        pq.write_table(
            pa.table({"id": ids, "text": [str(i) for i in ids]}), tmp_path / f"{number}.parquet", row_group_size=9
        )
        start += size
    return str(tmp_path / "*.parquet")


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def expected(glob: str, epochs: int = 2) -> list[list[int]]:
    loader = Loader(glob, BATCH)
    return [batch for _ in range(epochs) for batch in ids(loader)]


def test_batches_are_tensors(glob: str) -> None:
    batch = next(iter(StrataDataset(glob, BATCH)))
    assert batch["id"].dtype == torch.int64
    assert batch["text"] == [str(number) for number in batch["id"].tolist()]
    batch["id"] += 1


@pytest.mark.parametrize(("num_workers", "persistent"), [(0, False), (1, False), (4, False), (1, True), (4, True)])
def test_the_same_batches_for_every_number_of_workers(glob: str, num_workers: int, persistent: bool) -> None:
    dataset = StrataDataset(glob, BATCH)
    loader = DataLoader(dataset, batch_size=None, num_workers=num_workers, persistent_workers=persistent)
    assert ids(loader) + ids(loader) == expected(glob)
    dataset.set_epoch(0)
    assert ids(loader) == expected(glob, 1)
    dataset.set_epoch(0)
    assert ids(loader) == expected(glob, 1), "the same epoch twice"
    assert len(loader) == len(expected(glob, 1))


def test_spawned_workers_open_the_files_themselves(glob: str) -> None:
    """Takes seconds: two fresh interpreters import torch."""
    loader = DataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert ids(loader) == expected(glob, 1)


@pytest.mark.parametrize("num_workers", [0, 1, 4])
@pytest.mark.parametrize("after", ["0", "1", "n-1", "n"])
def test_stateful_dataloader_resumes_at_the_edges(glob: str, num_workers: int, after: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    whole = expected(glob, 3)
    steps = len(whole) // 3
    count = {"0": 0, "1": 1, "n-1": steps - 1, "n": steps}[after]
    first = stateful.StatefulDataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=num_workers)
    iterator = iter(first)
    seen = ids(islice(iterator, count))
    state = first.state_dict()
    second = stateful.StatefulDataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=num_workers)
    second.load_state_dict(state)
    rest = ids(second)
    assert seen + rest == whole[:steps]
    assert ids(second) == whole[steps : 2 * steps]


@pytest.mark.parametrize("num_workers", [0, 1, 4])
def test_a_finished_epoch_is_not_read_again(glob: str, num_workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    whole = expected(glob, 2)
    first = stateful.StatefulDataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=num_workers)
    assert ids(first) == whole[: len(whole) // 2]
    second = stateful.StatefulDataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=num_workers)
    second.load_state_dict(first.state_dict())
    assert ids(second) == whole[len(whole) // 2 :]


@pytest.mark.parametrize(("before", "after"), [(4, 0), (1, 4), (0, 2)])
def test_the_number_of_workers_may_change(glob: str, before: int, after: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    first = stateful.StatefulDataLoader(StrataDataset(glob, BATCH), batch_size=None, num_workers=before)
    seen = ids(islice(iter(first), 5))
    dataset = StrataDataset(glob, BATCH)
    dataset.load_state_dict(first.state_dict())
    rest = ids(DataLoader(dataset, batch_size=None, num_workers=after))
    assert seen + rest == expected(glob, 1)


def test_a_plain_dataloader_resumes_by_counting(glob: str) -> None:
    dataset = StrataDataset(glob, BATCH)
    seen = ids(islice(iter(DataLoader(dataset, batch_size=None, num_workers=2)), 3))
    state = json.loads(json.dumps(dataset.state_at(3)))
    resumed = StrataDataset(glob, BATCH)
    resumed.load_state_dict(state)
    assert seen + ids(DataLoader(resumed, batch_size=None)) == expected(glob, 1)

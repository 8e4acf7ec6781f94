"""Queue mode without a coordinator: each sample once per epoch, at any speed, from any saved position."""

import threading
from typing import TYPE_CHECKING, Any

import pytest

from strata.ambient import ambient
from strata.data import LocalQueue, QueueConfig, QueueLoader, build_manifest
from strata.errors import DeadlineExceeded, Fenced, Refused, UnknownDataset

if TYPE_CHECKING:
    from tests.support.datasets import Dataset

MANUAL = QueueConfig(poll_s=0.001)
AUTO = QueueConfig(auto_commit=True, poll_s=0.001)


def ids(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["id"].tolist()]


@pytest.mark.parametrize("config", [MANUAL, AUTO])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_an_epoch_has_every_sample_once(parquet: "Dataset", config: QueueConfig, batch_size: int) -> None:
    total = parquet.num_samples
    loader = QueueLoader(parquet.glob, batch_size, config)
    orders = []
    while loader.epoch < 2:
        batches = list(loader)
        loader.commit()
        if batches:
            assert [len(batch["id"]) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
            orders.append(ids(batches))
            assert loader.num_committed == total
    assert [sorted(order) for order in orders] == [list(range(total))] * 2
    assert orders[0] != orders[1]


def test_unshuffled_it_follows_the_files(parquet: "Dataset") -> None:
    loader = QueueLoader(parquet.glob, 8, QueueConfig(shuffle=False, with_index=True))
    batches = list(loader)
    assert ids(batches) == list(range(parquet.num_samples))
    assert [number for batch in batches for number in batch["__index__"].tolist()] == list(range(parquet.num_samples))


def test_a_saved_position_goes_on_anywhere(parquet: "Dataset") -> None:
    whole = list(QueueLoader(parquet.glob, 6, MANUAL))
    for taken in (0, 1, len(whole) - 1, len(whole)):
        first = QueueLoader(parquet.glob, 6, MANUAL)
        batches = iter(first)
        read = [next(batches) for _ in range(taken)]
        second = QueueLoader(parquet.glob, 6, MANUAL)
        second.load_state_dict(first.state_dict())
        assert sorted(ids(read) + ids(second)) == list(range(parquet.num_samples))


def test_a_position_in_other_data_is_refused(parquet: "Dataset") -> None:
    loader = QueueLoader(parquet.glob, 6)
    state = loader.state_dict()
    parquet.add(5)
    with pytest.raises(Refused, match="other data"):
        QueueLoader(parquet.glob, 6).load_state_dict(state)


def test_workers_of_uneven_speed_share_an_epoch(parquet: "Dataset") -> None:
    manifest = build_manifest(parquet.glob)
    queue = LocalQueue.of(manifest)
    read: dict[str, list[int]] = {"fast": [], "slow": []}
    allowed = threading.Semaphore(2)

    def work(name: str) -> None:
        for batch in QueueLoader(manifest, 4, AUTO, queue=queue.source(name)):
            if name == "slow":
                allowed.acquire()
            read[name] += batch["id"].tolist()
        allowed.release(1000)

    threads = [threading.Thread(target=work, args=(name,)) for name in read]
    threads[1].start()
    threads[0].start()
    threads[0].join(1)
    allowed.release(1000)
    for thread in threads:
        thread.join(60)
    assert sorted(read["fast"] + read["slow"]) == list(range(parquet.num_samples))
    assert len(read["fast"]) > len(read["slow"])


def test_what_a_dead_worker_had_not_committed_is_read_by_another(parquet: "Dataset") -> None:
    manifest = build_manifest(parquet.glob)
    queue = LocalQueue.of(manifest)
    dead = QueueLoader(manifest, 5, MANUAL, queue=queue.source("dead"))
    batches = iter(dead)
    committed = ids([next(batches)])
    dead.commit()
    next(batches)
    queue.leave("dead")
    rest = ids(QueueLoader(manifest, 5, AUTO, queue=queue.source("heir")))
    assert sorted(committed + rest) == list(range(parquet.num_samples))
    with pytest.raises(Fenced):
        dead.commit()


def test_the_end_of_an_epoch_must_be_committed(parquet: "Dataset") -> None:
    loader = QueueLoader(parquet.glob, 50, MANUAL)
    assert len(ids(loader)) == parquet.num_samples
    assert loader.epoch == 0
    with pytest.raises(Refused, match="not committed"):
        list(loader)
    loader.commit()
    assert list(loader) == []
    assert loader.epoch == 1


def test_the_wait_for_others_has_an_end(parquet: "Dataset") -> None:
    manifest = build_manifest(parquet.glob)
    queue = LocalQueue.of(manifest)
    list(QueueLoader(manifest, 50, MANUAL, queue=queue.source("never commits")))
    waiting = QueueLoader(manifest, 50, QueueConfig(poll_s=0.001, wait_s=0.01), queue=queue.source("waits"))
    assert list(waiting) == []
    with pytest.raises(DeadlineExceeded, match="other workers"):
        list(waiting)


def test_alone_there_are_no_checkpoints_to_announce(parquet: "Dataset") -> None:
    loader = QueueLoader(parquet.glob, 5)
    with pytest.raises(Refused, match="checkpoints"):
        loader.stage(10)
    with pytest.raises(Refused):
        loader.restore(10)


def test_in_a_job_files_that_nobody_registered_are_refused(parquet: "Dataset") -> None:
    """Else every rank would read all of them."""

    class Remote:
        claim = commit = restore = None

    ambient.queue = Remote
    with pytest.raises(UnknownDataset, match="registered"):
        QueueLoader(parquet.glob, 5)

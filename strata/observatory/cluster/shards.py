"""The shard table as the dashboard reads it: a row per shard, with everybody who reads samples of it."""

from typing import Literal, cast

from strata.observatory.answers.datasets import Shard, ShardReader
from strata.observatory.cluster.followed import FollowedCluster
from strata.observatory.cluster.vitals import UNHEARD, WorkerVitals
from strata.protocol.generated import control_pb2 as ct
from strata.types.datasets import DatasetSpec

__all__ = ["shard_rows"]

Mode = Literal["lanes", "queue", "dealt"]


def shard_rows(
    cluster: FollowedCluster, spec: DatasetSpec, table: ct.ShardTable, shown: tuple[int, int], epoch: int | None
) -> list[Shard]:
    """`shown` are the first shard and how many. A row's own worker is the one
    who reads most of the shard; in queue mode the one who took it last."""
    size, total = spec.shard_size, spec.total_samples
    first, last = shown[0], min(shown[0] + shown[1], spec.num_shards)
    readers: dict[int, list[ShardReader]] = {}
    committed: dict[int, int] = {}
    for i, (shard, number, start, stop) in enumerate(
        zip(table.shard, table.reader, table.start_index, table.end_index, strict=True)
    ):
        readers.setdefault(shard, []).append(_reader(table, number, start, stop))
        if table.committed:
            committed[shard] = table.committed[i]
    shares = dict(zip(table.workers, table.num_samples, strict=False))
    rows = []
    for shard in range(first, last):
        found = readers.get(shard, [])
        start, stop = shard * size, min((shard + 1) * size, total)
        main = _main(found, table.mode)
        vitals = cluster.vitals_of(main.worker_id) if main else UNHEARD
        asked = vitals.current_epoch if epoch is None else epoch
        progress: float | None
        if table.mode == "queue":
            progress = 100.0 * committed.get(shard, 0) / (stop - start)
        else:
            progress = _progress(vitals, shares.get(main.worker_id) if main else None, epoch)
        rows.append(
            Shard(
                shard_id=shard,
                worker_id=main.worker_id if main else None,
                rank=main.rank if main else None,
                alive=main.alive if main else None,
                start_index=start,
                end_index=stop,
                progress=progress,
                epoch=table.epoch if table.HasField("epoch") else asked,
                readers=found,
                task_id=table.task_id or None,
                mode=cast("Mode | None", table.mode or None),
            )
        )
    return rows


def _reader(table: ct.ShardTable, number: int, start: int, stop: int) -> ShardReader:
    rank = table.ranks[number]
    return ShardReader(
        worker_id=table.workers[number],
        rank=rank if rank >= 0 else None,
        alive=table.alive[number],
        start_index=start,
        end_index=stop,
    )


def _main(readers: list[ShardReader], mode: str) -> ShardReader | None:
    if not readers or mode == "queue":
        return readers[0] if readers else None
    read: dict[str, int] = {}
    for one in readers:
        read[one.worker_id] = read.get(one.worker_id, 0) + one.end_index - one.start_index
    most = max(read, key=lambda worker_id: read[worker_id])
    return next(one for one in readers if one.worker_id == most)


def _progress(vitals: WorkerVitals, share: int | None, epoch: int | None) -> float | None:
    """In percent, of the reader's whole share: readers interleave their shards, so no finer figure is measured."""
    if not share or vitals.samples_done is None or epoch not in (None, vitals.current_epoch):
        return None
    return min(100.0, 100.0 * vitals.samples_done / share)

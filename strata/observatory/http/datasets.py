"""Datasets: list, register, their shards, a look at their samples."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from strata.errors import UnknownDataset
from strata.observatory.answers.datasets import Dataset, DatasetRegistered, Shard
from strata.observatory.answers.previews import Preview
from strata.observatory.cluster.shards import shard_rows
from strata.observatory.http.body import Body, Int64
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.previews.files import FileReaders
from strata.observatory.previews.samples import shape_preview
from strata.observatory.records.fill import fill
from strata.types.datasets import DataFile, DatasetSpec
from strata.types.plain import shared
from strata.types.workers import check_metadata

__all__ = ["datasets_router"]

_DEFAULT_SHARDS = 64
_MAX_SHARD_SIZE = 10_000
_SHOWN, _MAX_SHOWN = 10_000, 100_000  # rows of a shard table in one answer
_MAX_INT = (1 << 63) - 1


class RegisterDataset(Body):
    """Counts that are missing are read from the files."""

    id: str
    path: str
    format: str = ""
    name: str | None = None
    total_samples: Int64 | None = None
    shard_size: Int64 | None = None
    shuffle: bool = True
    seed: Int64 = 0
    metadata: dict[str, str] = Field(default_factory=dict)


def datasets_router(parts: Parts) -> APIRouter:
    """The list comes from the read model; registration goes through the coordinator."""
    router = APIRouter(tags=["datasets"])

    @router.get("/api/datasets")
    async def datasets() -> Answer[list[Dataset]]:
        return Answer(parts.published.body("datasets"))

    @router.post("/api/datasets")
    async def register(body: RegisterDataset) -> Answer[DatasetRegistered]:
        spec = await _spec(body, parts.files)
        shards = await parts.commands.register_dataset(spec)
        return answer(fill(DatasetRegistered, spec, success=True, id=spec.dataset_id, total_shards=shards))

    @router.get("/api/datasets/{dataset_id}/shards")
    async def shards(
        dataset_id: str,
        epoch: int | None = None,
        task_id: str | None = None,
        first_shard: Annotated[int, Query(ge=0, le=_MAX_INT)] = 0,
        limit: Annotated[int, Query(ge=1, le=_MAX_SHOWN)] = _SHOWN,
    ) -> Answer[list[Shard]]:
        spec = _known(parts, dataset_id)
        table = await parts.commands.shard_table(dataset_id, task_id, first_shard, limit)
        return answer(shard_rows(parts.published.followed, spec, table, (first_shard, limit), epoch))

    @router.get("/api/datasets/{dataset_id}/preview")
    async def preview(
        dataset_id: str, worker_id: str | None = None, n: Annotated[int, Query(ge=1, le=32)] = 8
    ) -> Answer[Preview]:
        spec = _known(parts, dataset_id)
        found = parts.samples.find(dataset_id, worker_id or None)
        if found is not None:
            worker, sample = found
            return answer(shape_preview(dataset_id, sample, n, worker, None))
        if worker_id:  # what others read, or what the files hold, would pass for what this worker reads
            note = f"Worker {worker_id[:80]} has reported no samples of this dataset."
            return answer(shape_preview(dataset_id, {"rows": []}, n, None, note))
        rows = await parts.files.preview(spec.path, spec.format, count=n, epoch=0, seed=spec.seed)
        note = "No worker has reported samples yet: this is the start of the first epoch, read from the files."
        return answer(shape_preview(dataset_id, {**rows, "rows": rows}, n, None, note))

    return router


async def _spec(body: RegisterDataset, readers: FileReaders) -> DatasetSpec:
    total, format_name = body.total_samples, body.format
    files: tuple[DataFile, ...] = ()
    if total is None:
        counted = await readers.count(body.path, body.format)
        total, format_name = counted.total_samples, counted.format
        files = tuple(DataFile(path=path, num_samples=count) for path, count in counted.files)
    size = body.shard_size or max(1, min(_MAX_SHARD_SIZE, -(-total // _DEFAULT_SHARDS)))
    metadata = {**body.metadata, **({"name": body.name} if body.name else {})}
    known = {"dataset_id": body.id, "format": format_name, "total_samples": total, "shard_size": size, "files": files}
    return DatasetSpec(**{**shared(DatasetSpec, body), **known, "metadata": check_metadata(metadata)})


def _known(parts: Parts, dataset_id: str) -> DatasetSpec:
    dataset = parts.published.followed.records.datasets.get(dataset_id)
    if dataset is None:
        raise UnknownDataset(f"no dataset {dataset_id[:80]!r} is registered")
    return dataset.spec

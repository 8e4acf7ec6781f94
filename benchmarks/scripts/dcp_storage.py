"""One way to store what torch.distributed.checkpoint saves: `dcp_storage.py save|async|load|flip KIND WHERE MIB`.

KIND is strata, filesystem, s3torchconnector or torch.save; WHERE a folder or s3://bucket/prefix. One warm-up, one timed
run; `flip` changes one bit of what was saved and reports whether the load noticed.
"""

import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from benchmarks.measure import report, stopwatch

TENSORS = 96


class Way(NamedTuple):
    save: Callable[[Any, int], Any]
    load: Callable[[Any, int], Any]
    save_async: Callable[[Any, int], Any] | None = None


def way_of(kind: str, where: str) -> Way:
    if kind == "torch.save":
        folder = Path(where)

        def save(state: Any, step: int) -> None:
            with (folder / f"{step}.pt").open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())

        def load(state: Any, step: int) -> None:
            found = torch.load(folder / f"{step}.pt", weights_only=True)
            for name, tensor in state.items():
                tensor.copy_(found[name])

        return Way(save, load)
    writer, reader = _storage(kind, where)
    return Way(
        lambda state, step: dcp.save(state, storage_writer=writer(step)),
        lambda state, step: dcp.load(state, storage_reader=reader(step)),
        lambda state, step: dcp.async_save(state, storage_writer=writer(step)),
    )


def _storage(kind: str, where: str) -> tuple[Callable[[int], Any], Callable[[int], Any]]:
    if kind == "strata":
        from strata.integrations.dcp import StrataReader, StrataWriter

        return lambda step: StrataWriter(where, step), lambda step: StrataReader(where, step)
    if kind == "s3torchconnector":
        from s3torchconnector.dcp import S3StorageReader, S3StorageWriter

        return (
            lambda step: S3StorageWriter("us-east-1", f"{where}/{step}/"),
            lambda step: S3StorageReader("us-east-1", f"{where}/{step}/"),
        )
    return lambda step: dcp.FileSystemWriter(f"{where}/{step}"), lambda step: dcp.FileSystemReader(f"{where}/{step}")


def main(mode: str, kind: str, where: str, mib: int) -> None:
    warnings.filterwarnings("ignore")
    where = f"{where}/{kind}-{mode}-{os.getpid()}"
    if "://" not in where:
        Path(where).mkdir(parents=True)
    rendezvous = f"/tmp/dcp-rendezvous-{os.getpid()}"  # noqa: S108  # gone with the process group
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=0, world_size=1)
    count = (mib << 20) // 4 // TENSORS
    state = {f"layer.{index}": torch.randn(count) for index in range(TENSORS)}
    size = sum(tensor.numel() * 4 for tensor in state.values())
    way = way_of(kind, where)
    try:
        if mode == "flip":
            report({"noticed": float(_flip_is_noticed(way, state, Path(where)))})
            return
        for step in range(2):
            if mode == "load":
                way.save(state, step)
            extra = {}
            start = time.perf_counter()
            with stopwatch() as watch:
                if mode == "async":
                    assert way.save_async is not None
                    pending = way.save_async(state, step)
                else:
                    (way.load if mode == "load" else way.save)(state, step)
            if mode == "async":
                pending.result()
                extra["until_durable_s"] = time.perf_counter() - start
            if "://" not in where:
                for found in Path(where).iterdir():
                    shutil.rmtree(found) if found.is_dir() else found.unlink()
        report(watch.values(bytes_per_s=size / watch.wall_s, **extra))
    finally:
        dist.destroy_process_group()
        if "://" not in where:
            shutil.rmtree(where)


def _flip_is_noticed(way: Way, state: Any, folder: Path) -> bool:
    """One bit in the middle of a tensor in the largest file: at its edges lie the headers of torch's own format."""
    way.save(state, 0)
    largest = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        size = largest.stat().st_size
        file.seek(size // 2 + size // TENSORS // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    before = {name: tensor.clone() for name, tensor in state.items()}
    try:
        way.load(state, 0)
    except (Exception, dcp.CheckpointException) as error:  # DCP's own is a BaseException
        print(f"noticed: {str(error).splitlines()[-1]}")
        return True
    changed = [
        name
        for name, tensor in state.items()
        if not torch.equal(tensor.view(torch.int32), before[name].view(torch.int32))
    ]
    print(f"loaded without a word; changed: {changed}")
    return False


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))

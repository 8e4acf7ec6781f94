"""torch.distributed.checkpoint on the same bytes: `dcp_checkpoint.py save|save2|async|load FOLDER MIB`; one warm-up,
one timed run."""

import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from benchmarks.measure import report, stopwatch

TENSORS = 96


def main(mode: str, folder: str, mib: int) -> None:
    warnings.filterwarnings("ignore")
    work = Path(tempfile.mkdtemp(dir=folder))
    dist.init_process_group("gloo", init_method=f"file://{work}/rendezvous", rank=0, world_size=1)
    count = (mib << 20) // 4 // TENSORS
    state = {f"layer.{index}": torch.randn(count) for index in range(TENSORS)}
    size = sum(tensor.numel() * 4 for tensor in state.values())
    target = work / "checkpoint"
    try:
        for _ in range(2):
            shutil.rmtree(target, ignore_errors=True)
            if mode == "load":
                dcp.save(state, storage_writer=dcp.FileSystemWriter(target))
            threads = 2 if mode == "save2" else 1
            extra = {}
            with stopwatch() as watch:
                if mode == "async":
                    start = time.perf_counter()
                    pending = dcp.async_save(state, storage_writer=dcp.FileSystemWriter(target))
                elif mode == "load":
                    dcp.load(state, storage_reader=dcp.FileSystemReader(target))
                else:
                    dcp.save(state, storage_writer=dcp.FileSystemWriter(target, thread_count=threads))
            if mode == "async":
                pending.result()
                extra["until_durable_s"] = time.perf_counter() - start
        report(watch.values(bytes_per_s=size / watch.wall_s, **extra))
    finally:
        dist.destroy_process_group()
        shutil.rmtree(work)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

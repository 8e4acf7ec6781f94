"""The first batch of a job that goes on at a random position: `loader_resume.py loader|plain PATTERN`.

`loader` is Strata from an open manifest; `ten_batches_s` says that the rest of the work was not merely put off.
`plain` reads the row groups in which such a batch lies, with pyarrow and nothing else.
"""

import random
import sys
from itertools import islice

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import report, stopwatch
from strata.data import Loader, Manifest, build_manifest

BATCH, THREADS = 256, 2


def resume(manifest: Manifest, step: int) -> dict[str, float]:
    state = Loader(manifest, BATCH).state_at(step)
    with stopwatch() as all_ten:
        with stopwatch() as watch:
            loader = Loader(manifest, BATCH, num_threads=THREADS)
            loader.load_state_dict(state)
            batches = iter(loader)
            first = next(batches)
        assert len(first["id"]) == BATCH
        assert sum(1 for _ in islice(batches, 9)) == 9
    loader.close()
    return watch.values(
        state_bytes=len(str(state)), num_lanes=len(loader.lanes), ten_batches_s=all_ten.wall_s, ten_cpu_s=all_ten.cpu_s
    )


def plain(manifest: Manifest, step: int) -> dict[str, float]:
    order = Loader(manifest, BATCH).order
    shards = np.unique(order.batch(0, step).shards)
    files = [str(manifest.source.fetch(manifest.files[file])) for file in manifest.block_files[shards]]
    groups = manifest.block_numbers[shards].tolist()
    with stopwatch() as watch:
        for file, group in zip(files, groups, strict=True):
            pq.ParquetFile(file).read_row_group(group, use_threads=False)
    return watch.values(row_groups=len(groups))


def main(mode: str, pattern: str) -> None:
    manifest = build_manifest(pattern)
    steps = len(Loader(manifest, BATCH)) - 10
    report((resume if mode == "loader" else plain)(manifest, random.randrange(steps)))


if __name__ == "__main__":
    main(*sys.argv[1:])

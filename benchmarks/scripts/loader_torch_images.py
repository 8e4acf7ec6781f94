"""torch DataLoader with two workers that read parquet and decode JPEGs with Pillow."""

import io
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from benchmarks.measure import report, stopwatch


class Images(IterableDataset):  # type: ignore[misc]  # torch is in the peer's virtualenv only
    def __init__(self, paths: list[Path]) -> None:
        self.groups = [(path, n) for path in paths for n in range(pq.ParquetFile(path).num_row_groups)]

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        info = get_worker_info()
        groups = self.groups[info.id :: info.num_workers] if info else self.groups
        for path, number in random.sample(groups, len(groups)):
            rows = pq.ParquetFile(path).read_row_group(number, use_threads=False).to_pylist()
            random.shuffle(rows)
            for row in rows:
                image = np.array(Image.open(io.BytesIO(row["image"])).convert("RGB"))
                yield torch.from_numpy(image), row["label"]


def main(folder: Path) -> None:
    with stopwatch() as watch:
        loader = DataLoader(Images(sorted(folder.glob("*.parquet"))), batch_size=32, num_workers=2)
        seen = sum(len(images) for images, _ in loader)
    report(watch.values(samples_per_s=seen / watch.wall_s, samples_per_cpu_s=seen / watch.cpu_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

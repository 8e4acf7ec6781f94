"""torch DataLoader over parquet rows, written by hand: row groups in random order, rows shuffled in a window of 8."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader, IterableDataset

from benchmarks.measure import report, stopwatch


class Rows(IterableDataset):  # type: ignore[misc]  # torch is in the peer's virtualenv only
    def __init__(self, paths: list[Path]) -> None:
        self.groups = [(path, n) for path in paths for n in range(pq.ParquetFile(path).num_row_groups)]

    def __iter__(self) -> Iterator[dict[str, object]]:
        groups = random.sample(self.groups, len(self.groups))
        for start in range(0, len(groups), 8):
            tables = [pq.ParquetFile(path).read_row_group(n) for path, n in groups[start : start + 8]]
            parts = [
                (
                    torch.from_numpy(t["tokens"].combine_chunks().flatten().to_numpy().reshape(len(t), -1).copy()),
                    torch.from_numpy(t["label"].to_numpy().copy()),
                )
                for t in tables
            ]
            rows = [(part, row) for part, (tokens, _) in enumerate(parts) for row in range(len(tokens))]
            random.shuffle(rows)
            for part, row in rows:
                yield {"tokens": parts[part][0][row], "label": parts[part][1][row]}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with stopwatch() as watch:
        loader = DataLoader(Rows(sorted(folder.glob("*.parquet"))), batch_size=256)
        seen = sum(len(batch["label"]) for batch in loader)
    report(watch.values(samples_per_s=seen / watch.wall_s, samples_per_cpu_s=seen / watch.cpu_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

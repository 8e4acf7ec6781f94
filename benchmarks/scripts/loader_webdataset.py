"""webdataset over tar shards on the local disk: shard shuffle, a buffer of 1,000 samples, batches of 256."""

import sys
from pathlib import Path

import webdataset

from benchmarks.measure import report, stopwatch


def main(folder: Path) -> None:
    shards = sorted(str(path) for path in folder.glob("*.tar"))
    with stopwatch() as watch:
        dataset = (
            webdataset.WebDataset(shards, shardshuffle=len(shards))
            .shuffle(1000)
            .decode()
            .to_tuple("tokens.npy", "cls")
            .batched(256)
        )
        seen = sum(len(labels) for _, labels in dataset)
    report(watch.values(samples_per_s=seen / watch.wall_s, samples_per_cpu_s=seen / watch.cpu_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

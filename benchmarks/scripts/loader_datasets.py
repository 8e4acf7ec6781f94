"""Hugging Face datasets, streaming from local parquet: shard shuffle, a buffer of 1,000 samples, batches of 256."""

import os
import sys
from pathlib import Path

from benchmarks.measure import report, stopwatch


def main(folder: Path) -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    from datasets import load_dataset  # after its settings, which it reads on import

    files = sorted(str(path) for path in folder.glob("*.parquet"))
    with stopwatch() as watch:
        dataset = load_dataset("parquet", data_files=files, split="train", streaming=True)
        shuffled = dataset.shuffle(seed=1, buffer_size=1000).with_format("numpy")
        seen = sum(len(batch["label"]) for batch in shuffled.iter(batch_size=256))
    report(watch.values(samples_per_s=seen / watch.wall_s, samples_per_cpu_s=seen / watch.cpu_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

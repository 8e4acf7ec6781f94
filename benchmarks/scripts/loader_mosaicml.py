"""MosaicML streaming over MDS shards on the local disk, shuffled with py1e, under torch's DataLoader."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
from torch.utils.data import DataLoader

from benchmarks.measure import report, stopwatch

# streaming imports torchvision for image datasets that are not used here, and its CUDA wheel does not load beside torch
# for CPU: an empty stand-in is all that the import needs.
for _name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional"):
    _stand_in = MagicMock(__spec__=ModuleSpec(_name, None), VisionDataset=type("VisionDataset", (), {}))
    sys.modules[_name] = _stand_in

from streaming import MDSWriter, StreamingDataset  # noqa: E402  # after the lines above


def write(folder: Path, out: Path) -> None:
    tokens, labels = np.load(folder / "tokens.npy"), np.load(folder / "labels.npy")
    columns = {"tokens": f"ndarray:int32:{tokens.shape[1]}", "label": "int"}
    with MDSWriter(out=str(out), columns=columns, size_limit=1 << 20) as writer:
        for row, label in zip(tokens, labels, strict=True):
            writer.write({"tokens": row, "label": int(label)})


def main(folder: Path) -> None:
    out = folder / "mds"
    if not out.exists():
        write(folder, out)
    with stopwatch() as watch:
        dataset = StreamingDataset(local=str(out), shuffle=True, shuffle_algo="py1e", batch_size=256)
        seen = sum(len(batch["label"]) for batch in DataLoader(dataset, batch_size=256))
    report(watch.values(samples_per_s=seen / watch.wall_s, samples_per_cpu_s=seen / watch.cpu_s))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

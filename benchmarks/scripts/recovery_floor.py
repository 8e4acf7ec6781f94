"""What any restart of a rank costs here: an interpreter, the training script's imports, and the newest checkpoint."""

import sys

import numpy as np

import strata
from strata.checkpoint.manager import CheckpointManager


def main() -> None:
    assert strata.data.Loader.__name__  # what is imported when it is used
    with CheckpointManager(sys.argv[1]) as manager:
        newest = manager.get_latest()
        assert newest is not None
        assert np.isfinite(manager.load(newest.step, rank=0, world_size=int(sys.argv[2]))["weights"]).all()


if __name__ == "__main__":
    main()

"""50,000 calls of `run.log` with no server: the points end in the offline folder."""

import os
import tempfile
from pathlib import Path

import strata
from benchmarks.measure import report, stopwatch

CALLS = 50_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STRATA_DATA_DIR"] = folder
        run = strata.init(project="bench", name="log")
        with stopwatch() as watch:
            for step in range(CALLS):
                run.log({"loss": 0.5, "lr": 0.1}, step=step)
        with stopwatch() as closing:
            run.finish()
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.batch"))
        report(
            watch.values(
                us_per_call=watch.wall_s / CALLS * 1e6,
                finish_s=closing.wall_s,
                dropped=run.dropped,
                disk_bytes=size,
            )
        )


if __name__ == "__main__":
    main()

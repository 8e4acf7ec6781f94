"""Strata: points logged with `run.log` until the store has them, read back over REST, from the store and from the live
cache of an observatory that was just started."""

import os
import sys
import time
from pathlib import Path

import strata
from benchmarks.scripts.observatory_server import Server, server
from benchmarks.scripts.store_task import STORED, measure_store

RUN = "bench"


def write(folder: Path, points: int) -> float:
    with server(folder) as running:
        os.environ["STRATA_DATA_DIR"] = str(folder)
        os.environ["STRATA_TELEMETRY_ADDR"] = running.telemetry
        start = time.perf_counter()
        run = strata.init(project="bench", name="bench", run_id=RUN)
        for step in range(points):
            run.log({"loss": step * 0.5}, step=step)
        run.finish()
        running.wait_stored()
        took_s = time.perf_counter() - start
        kept = running.get(f"/metrics/{RUN}?metric=loss&from_step=0&points=2000")["series"][0]["total_points"]
        assert kept == points, f"{kept} of {points} points are there"
    return took_s


def read(folder: Path) -> dict[str, float]:
    with server(folder) as running:
        while running.get(f"/metrics/{RUN}?metric=loss")["series"][0]["total_points"] < STORED:
            time.sleep(0.05)
        running.wait_idle()
        store_s, count = _timed(running, f"/metrics/{RUN}?metric=loss&from_step=0&points=2000")
        cache_s, _ = _timed(running, f"/metrics/{RUN}?metric=loss&points=2000")
    return {"read_s": store_s, "read_points": count, "read_cached_s": cache_s}


def _timed(running: Server, path: str) -> tuple[float, int]:
    start = time.perf_counter()
    found = running.get(path)["series"][0]["steps"]
    return time.perf_counter() - start, len(found)


if __name__ == "__main__":
    sys.stdout.flush()
    measure_store("strata", write, read)

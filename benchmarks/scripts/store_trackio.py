"""trackio: points logged by a process of its own (its folder is chosen by the environment), read back from its storage,
which samples."""

import os
import subprocess
import sys
import time
from pathlib import Path

import trackio
from trackio.sqlite_storage import SQLiteStorage

from benchmarks.scripts.store_task import measure_store


def write(folder: Path, points: int) -> float:
    env = os.environ | {"TRACKIO_DIR": str(folder)}
    done = subprocess.run([sys.executable, __file__, "log", str(points)], check=True, env=env, capture_output=True)
    return float(done.stderr.split()[-1])


def read(folder: Path) -> dict[str, float]:
    env = os.environ | {"TRACKIO_DIR": str(folder)}
    done = subprocess.run([sys.executable, __file__, "read", "2000"], check=True, env=env, capture_output=True)
    read_s, count = done.stderr.split()[-2:]
    return {"read_s": float(read_s), "read_points": float(count)}


def log(points: int) -> None:
    trackio.init(project="bench", name="run", embed=False)
    start = time.perf_counter()
    for step in range(points):
        trackio.log({"loss": step * 0.5}, step=step)
    trackio.finish()
    took_s = time.perf_counter() - start
    kept = len(SQLiteStorage.get_logs("bench", "run"))
    assert kept == points, f"{kept} of {points} points are there"
    sys.stderr.write(f"\n{took_s}\n")


def read_back(points: int) -> None:
    start = time.perf_counter()
    found = SQLiteStorage.get_logs("bench", "run", max_points=points)
    sys.stderr.write(f"\n{time.perf_counter() - start} {len(found)}\n")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"log": log, "read": read_back}[sys.argv[1]](int(sys.argv[2]))
    else:
        measure_store("trackio", write, read)

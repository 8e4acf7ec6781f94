"""aim: points tracked by a process of its own (a run is on disk when its process ends, not when it is closed), read
back as its page does, by `sample`."""

import subprocess
import sys
import time
from pathlib import Path

from aim import Repo, Run
from aim.sdk.index_manager import RepoIndexManager

from benchmarks.scripts.store_task import measure_store


def write(folder: Path, points: int) -> float:
    command = [sys.executable, __file__, str(folder), str(points)]
    key, began = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    took_s = time.time() - float(began)
    (folder / "run_id").write_text(key)
    return took_s


def read(folder: Path) -> dict[str, float]:
    repo, key = Repo(str(folder)), (folder / "run_id").read_text()
    RepoIndexManager.get_index_manager(repo).index(key)  # what its server does in the background
    start = time.perf_counter()
    metric = next(iter(repo.get_run(key).metrics()))
    steps, _ = metric.data.view("val").sample(2_000).items_list()
    return {"read_s": time.perf_counter() - start, "read_points": len(steps)}


def track(folder: str, points: int) -> None:
    repo = Repo(folder, init=True)
    began = time.time()
    run = Run(repo=repo, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
    for step in range(points):
        run.track(step * 0.5, name="loss", step=step)
    run.close()
    sys.stdout.write(f"{run.hash} {began}\n")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        track(sys.argv[1], int(sys.argv[2]))
    else:
        measure_store("aim", write, read)

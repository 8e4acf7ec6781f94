"""Records a real training job into dashboard/public/demo.gz, which the page's demo mode plays back.

    python scripts/record_demo.py [--seconds 90] [--out file]

What is kept is the server's own JSON: the event stream, and the answers that pages ask for. A worker is really killed.
Names of this machine do not stay in it.
"""

import argparse
import gzip
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests.support starts and stops a real `strata up`

from strata.config import Settings  # noqa: E402  # after the path
from strata.demo.job import Demo, submit_stories  # noqa: E402
from tests.support.cluster import Cluster  # noqa: E402
from tests.support.waiting import eventually  # noqa: E402

OUT = ROOT / "dashboard" / "public" / "demo.gz"
ASK_EVERY_S = 10.0
STARTS_WITHIN_S = 600.0
HISTORY = 10  # checkpoints before the recording begins


class Recorder:
    """These jobs from now on: every event with the time of its arrival, every answer when it was asked for."""

    def __init__(self, cluster: Cluster, jobs: tuple[Demo, ...]) -> None:
        self._http = cluster.endpoints["http"]
        self._jobs = jobs
        self._events: list[tuple[int, str, str]] = []
        self._answers: dict[str, list[tuple[int, str]]] = {}
        self._started = time.time()

    def record(self, seconds: float, kill: int) -> dict[str, object]:
        """The process `kill` is killed after a third of the time."""
        self._ask()
        self._started = time.time()
        threading.Thread(target=self._listen, daemon=True).start()
        killed = False
        while (passed := time.time() - self._started) < seconds:
            if not killed and passed > seconds / 3:
                os.kill(kill, signal.SIGKILL)
                killed = True
            time.sleep(min(ASK_EVERY_S, seconds - passed))
            self._ask()
        for job in self._jobs:
            self._keep(f"/metrics/{job.task_id}", "?points=200")  # large, and only asked for by who zooms in
        return {
            "started_ms": round(self._started * 1000),
            "duration_ms": round(seconds * 1000),
            "events": [event for event in self._events if event[0] <= seconds * 1000],
            "answers": self._answers,
        }

    def _ask(self) -> None:
        plain = ("/status", "/dashboard", "/fleet", "/runs", "/alerts", "/alerts/rules", "/dashboards")
        paths = {**dict.fromkeys(plain, ""), "/logs": "?limit=1000"}
        columns = json.loads(self._get("/runs/table"))["names"]  # pages choose among them
        paths["/runs/table"] = f"?{urlencode([('sort', 'started'), *(('column', name) for name in columns)])}"
        for job in self._jobs:
            run, stories = f"/runs/{job.task_id}", "?metric=sample&kind=text"
            paths |= dict.fromkeys((f"{run}/summary", f"{run}/heat", f"{run}/media"), "")
            paths |= {f"{run}/media/steps": stories, f"{run}/media/entries": f"{stories}&limit=1000"}
            task = f"/tasks/{job.task_id}"
            paths |= {f"{task}/course": "", f"{task}/why": "", f"/checkpoints/{job.task_id}": ""}
            paths |= {f"/datasets/{job.dataset_id}/shards": "", f"/datasets/{job.dataset_id}/preview": "?n=16"}
        for path, query in paths.items():
            self._keep(path, query)

    def _keep(self, path: str, query: str) -> None:
        self._answers.setdefault(path, []).append((self._offset(), self._get(path + query)))

    def _get(self, address: str) -> str:
        with urlopen(f"{self._http}/api{address}", timeout=60) as answer:  # noqa: S310 - our own server
            return str(answer.read().decode())

    def _listen(self) -> None:
        name = ""
        with urlopen(f"{self._http}/stream", timeout=60) as stream:  # noqa: S310 - our own server
            for line in stream:
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    name = rest
                elif word == "data":
                    self._events.append((self._offset(), name, rest))

    def _offset(self) -> int:
        return max(0, round((time.time() - self._started) * 1000))


def train(cluster: Cluster) -> tuple[Demo, Demo]:
    """A short job that has ended, and a longer one in the midst of its work."""
    settings, address = Settings(data_dir=cluster.folder), cluster.endpoints["grpc"]
    short = submit_stories(settings, address, name="stories-trial", num_workers=2, steps=100, pause_s=0.0)
    eventually("the end of the short job", lambda: is_over(cluster, short), within_s=STARTS_WITHIN_S)
    job = submit_stories(settings, address)
    eventually("history", lambda: len(saved(cluster, job)) >= HISTORY, within_s=STARTS_WITHIN_S)
    return short, job


def is_over(cluster: Cluster, job: Demo) -> bool:
    tasks = {one["id"]: one["status"] for one in cluster.get("/api/tasks")}  # it may not have heard of it yet
    return tasks.get(job.task_id) == "completed"


def saved(cluster: Cluster, job: Demo) -> list[Any]:
    return [one for one in cluster.get("/api/checkpoints") if one["task_id"] == job.task_id]


def worker_pid(cluster: Cluster, job: Demo, rank: int) -> int:
    """The process of a rank, found by what it was started with."""
    for process in psutil.Process(cluster.process.pid).children(recursive=True):
        environment = process.environ()
        if environment.get("STRATA_TASK_ID") == job.task_id and environment.get("RANK") == str(rank):
            return process.pid
    raise SystemExit(f"rank {rank} of {job.task_id} has no process")


def anonymous(text: str, folder: Path) -> str:
    """Without this machine's paths and its name."""
    for found, shown in ((str(folder), "/data"), (str(ROOT), "/opt/strata"), (socket.gethostname(), "node-0")):
        text = text.replace(found, shown)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Cluster(folder, "--slots", "6") as cluster:
            short, job = train(cluster)
            recording = Recorder(cluster, (short, job)).record(options.seconds, worker_pid(cluster, job, 2))
        text = anonymous(json.dumps(recording, separators=(",", ":")), folder)
    options.out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    sys.stdout.write(f"{options.out}: {options.out.stat().st_size:,} bytes, {len(text):,} unpacked\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

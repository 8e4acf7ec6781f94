"""`strata up` on a disk with no room left: nothing is promised, everything comes back with the room, nothing that was
acknowledged is lost.
"""

from functools import partial
from itertools import count, takewhile
from pathlib import Path
from urllib.error import URLError

import psutil
import pytest

from tests.support.cluster import Cluster
from tests.support.small_disk import fill, small_disk
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


def test_everything_comes_back_when_there_is_room_again(tmp_path: Path) -> None:
    """Takes about 30 s: the coordinator promises while its journal has room, then dies of it; the observatory is killed
    and starts on the full disk."""
    with small_disk(tmp_path / "disk", size_mb=120) as disk, Cluster(disk / "data", "--no-agent") as cluster:
        cluster.wait_for_store()
        assert registers(cluster, "before")
        fill(disk / "filler")
        taken = list(takewhile(partial(registers, cluster), (f"full{number}" for number in count())))
        observatory = cluster.pid_of("observatory")
        assert observatory is not None
        psutil.Process(observatory).kill()
        eventually("a line about the room", lambda: room_line(cluster), within_s=60)
        fill(disk / "filler")
        assert cluster.process.poll() is None
        (disk / "filler").unlink()
        eventually("a coordinator that promises", lambda: registers(cluster, "after"), within_s=90)
        eventually("all that was promised", lambda: shown(cluster) >= {"before", "after", *taken}, within_s=60)
        eventually("the points", lambda: points(cluster) == 1, within_s=90)


def registers(cluster: Cluster, name: str) -> bool:
    """Whether it was acknowledged."""
    try:
        body = {"id": name, "path": "p" * 4_000, "total_samples": 10, "shard_size": 5}
        return bool(cluster.post("/api/datasets", body)["success"])
    except (URLError, OSError):
        return False


def shown(cluster: Cluster) -> set[str]:
    return {dataset["id"] for dataset in cluster.get("/api/datasets")}


def room_line(cluster: Cluster) -> str:
    assert cluster.process.stdout is not None
    line = cluster.process.stdout.readline()
    return line if "died" in line and ("full" in line or "room" in line) else ""


def points(cluster: Cluster) -> int:
    try:
        return sum(series["total_points"] for series in cluster.get("/metrics/store-probe")["series"])
    except (URLError, OSError):
        return 0

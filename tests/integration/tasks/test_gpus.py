"""Cards of a host in a real cluster, whose agent reads them from a driver library: given to one rank at a time, kept
over a killed agent, had again by a rank that was killed, and given back."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.support.cluster import Cluster, strata
from tests.support.fake_nvml import build_fake_nvml
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

_SCRIPT = """
import json, os, sys, time
names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "STRATA_GPUS")
seen = {name: os.environ.get(name) for name in names} | {"pid": os.getpid()}
note = f"{sys.argv[1]}/{os.environ['STRATA_TASK_ID']}.{os.environ['STRATA_ATTEMPT']}.{os.environ['RANK']}"
with open(note + ".part", "w") as file:
    json.dump(seen, file)
os.rename(note + ".part", note)
time.sleep(600)
"""


class _Lab:
    """A cluster of one host with four cards, and what ranks on it noted."""

    def __init__(self, folder: Path, up: Cluster) -> None:
        self.folder, self.up = folder, up
        (folder / "train.py").write_text(_SCRIPT)

    def submit(self, workers: int, gpus: int) -> str:
        entrypoint = ["python", str(self.folder / "train.py"), str(self.folder)]
        body = {"name": "cards", "worker_count": workers, "gpus_per_worker": gpus, "entrypoint": entrypoint}
        return str(self.up.post("/api/tasks", body)["task_id"])

    def notes(self, task_id: str, workers: int, attempt: int = 1) -> list[dict[str, Any]]:
        files = [self.folder / f"{task_id}.{attempt}.{rank}" for rank in range(workers)]
        eventually(f"attempt {attempt} of {task_id}", lambda: all(file.exists() for file in files))
        return [json.loads(file.read_text()) for file in files]

    def reason(self, task_id: str) -> str:
        return str(self.up.get(f"/api/tasks/{task_id}")["reason"])

    def stop(self, task_id: str) -> None:
        self.up.post(f"/api/tasks/{task_id}/stop?now=true", {})
        eventually("its end", lambda: self.up.get(f"/api/tasks/{task_id}")["status"] == "stopped")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Lab]:
    folder = tmp_path_factory.mktemp("lab")
    driver = build_fake_nvml(folder / "driver")
    with Cluster(folder / "data", "--slots", "8", environment=driver) as up:
        yield _Lab(folder, up)


def test_cards_are_given_to_one_rank_at_a_time(lab: _Lab) -> None:
    pair = lab.submit(2, 1)
    first, second = lab.notes(pair, 2)
    assert [first["LOCAL_RANK"], second["LOCAL_RANK"]] == ["0", "1"]
    assert first["LOCAL_WORLD_SIZE"] == "2"
    assert [first["STRATA_GPUS"], second["STRATA_GPUS"]] == ["0", "1"]
    for rank in (first, second):  # cuda:LOCAL_RANK is its own
        assert rank["CUDA_VISIBLE_DEVICES"].split(",")[int(rank["LOCAL_RANK"])] == rank["STRATA_GPUS"]
        assert rank["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    wide = lab.submit(1, 2)
    assert lab.notes(wide, 1)[0]["CUDA_VISIBLE_DEVICES"] == "2,3"
    late = lab.submit(1, 1)
    eventually("a reason", lambda: "waiting for 1 slot with 1 GPU: 0 of 4 are free" in lab.reason(late))

    _check_shown(lab, pair, wide)
    os.kill(first["pid"], signal.SIGKILL)
    again = lab.notes(pair, 2, attempt=2)
    assert [one["STRATA_GPUS"] for one in again] == ["0", "1"]

    agent = lab.up.pid_of("agent")
    assert agent is not None
    os.kill(agent, signal.SIGKILL)
    eventually("the next agent", lambda: lab.up.pid_of("agent") not in (None, agent))
    lab.stop(pair)
    assert lab.notes(late, 1)[0]["STRATA_GPUS"] in ("0", "1")  # those of `wide`, which runs on, are not to be had
    assert Path("/proc", str(lab.notes(wide, 1)[0]["pid"])).exists()
    lab.stop(wide)
    lab.stop(late)


def _check_shown(lab: _Lab, pair: str, wide: str) -> None:
    assert lab.up.get("/api/tasks/" + pair)["gpus_per_worker"] == 1
    assert [host["gpu_count"] for host in lab.up.get("/api/hosts")] == [4]

    def cards() -> dict[str, list[int]]:
        workers = [one for one in lab.up.get("/api/workers") if one["resources"]]
        return {one["id"]: [gpu["gpu_id"] for gpu in one["resources"]["gpu_metrics"]] for one in workers}

    eventually("their use", lambda: cards() == {f"{pair}-0": [0], f"{pair}-1": [1], f"{wide}-0": [2, 3]})
    workers = {one["id"]: one for one in lab.up.get("/api/workers")}
    assert {name: one["gpu_count"] for name, one in workers.items()} == {f"{pair}-0": 1, f"{pair}-1": 1, f"{wide}-0": 2}
    second, third = workers[f"{wide}-0"]["resources"]["gpu_metrics"]
    assert (second["utilization_percent"], second["memory_used_bytes"]) == (30.0, 3 << 30)
    assert third["utilization_percent"] is None  # its driver does not count it


def test_what_no_host_has_is_refused_before_anything_starts(lab: _Lab) -> None:
    with pytest.raises(HTTPError) as refused:
        lab.submit(1, 5)
    assert refused.value.code == 400
    error = json.load(refused.value)["error"]
    assert "cannot have 5 GPUs" in error["message"]
    assert "at most 4 per worker" in error["hint"]
    script = str(lab.folder / "train.py")
    done = strata("run", "--data-dir", str(lab.up.folder), "--gpus-per-worker", "9", script, str(lab.folder))
    assert done.returncode != 0
    assert "a worker cannot have 9 GPUs" in done.stderr


def test_a_task_without_cards_sees_what_its_agent_sees(lab: _Lab) -> None:
    plain = lab.submit(1, 0)
    note = lab.notes(plain, 1)[0]
    assert note["STRATA_GPUS"] is None
    assert note["CUDA_VISIBLE_DEVICES"] == os.environ.get("CUDA_VISIBLE_DEVICES")
    lab.stop(plain)


def test_an_outer_list_bounds_the_cards_and_a_host_without_a_driver_has_none(lab: _Lab, tmp_path: Path) -> None:
    driver = str(lab.folder / "driver")
    environment = {"LD_LIBRARY_PATH": driver, "CUDA_VISIBLE_DEVICES": "GPU-3000-fake,1"}
    with Cluster(tmp_path / "data", "--slots", "4", environment=environment) as up:
        narrow = _Lab(tmp_path, up)
        assert [host["gpu_count"] for host in up.get("/api/hosts")] == [2]
        task_id = narrow.submit(2, 1)
        first, second = narrow.notes(task_id, 2)
        assert [first["STRATA_GPUS"], second["STRATA_GPUS"]] == ["GPU-3000-fake", "1"]
        assert first["CUDA_VISIBLE_DEVICES"] == "GPU-3000-fake,1"
        assert first["CUDA_DEVICE_ORDER"] is None
        narrow.stop(task_id)
    with Cluster(tmp_path / "bare", environment={"LD_LIBRARY_PATH": ""}) as up, pytest.raises(HTTPError) as refused:
        _Lab(tmp_path, up).submit(1, 1)
    assert "no host has any that its driver shows" in json.load(refused.value)["error"]["message"]

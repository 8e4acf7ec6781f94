"""Checkpoints on real S3 servers, through a network that misbehaves, and on one that breaks its promises."""

import json
import logging
import os
import secrets
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from strata.checkpoint import CheckpointManager, StoreCommit
from strata.errors import Conflict, StorageAccessDenied, StorageError, StorageNotFound
from strata.storage.base import HoldsUploads
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store
from strata.types.checkpoints import CheckpointInfo
from tests.support.local_http import LOCAL
from tests.support.ports import free_ports
from tests.support.proxy import Proxy, Trouble
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed

_MIB = 1 << 20
_BUCKET = "checkpoints"


@pytest.fixture
def prefix() -> str:
    seaweed().make_bucket(_BUCKET)
    return f"s3://{_BUCKET}/{secrets.token_hex(4)}"


def _options(**changes: Any) -> StorageOptions:
    return seaweed().options(part_size=5 * _MIB, **changes)


def _state(value: float, mib: int = 16) -> dict[str, Any]:
    return {"w": np.full(mib * _MIB // 8, value), "step": value}


def test_save_load_retention_and_restart(prefix: str) -> None:
    with CheckpointManager(prefix, keep_count=2, storage=_options()) as manager:
        for step in (1, 2, 3):
            manager.save_async(_state(step), step=step, data_state={"cursor": step}).result()
        assert manager.conditional_writes is True
    fresh = CheckpointManager(prefix, storage=_options())
    assert [info.step for info in fresh.list()] == [3, 2]
    latest = fresh.get_latest()
    assert latest is not None
    assert latest.path == f"{prefix}/step-000000000003"
    assert fresh.verify(3).verified
    recovery = fresh.recover()
    assert recovery is not None
    assert np.array_equal(recovery.state["w"], _state(3)["w"])
    assert recovery.data_state == {"cursor": 3}
    assert list(fresh.load(2, names=["w"])) == ["w"]


def test_one_of_two_racing_writers_of_a_step_commits(prefix: str) -> None:
    outcomes: list[object] = []
    gate = threading.Barrier(2)

    def run(value: float) -> None:
        with CheckpointManager(prefix, storage=_options()) as manager:
            gate.wait()
            try:
                outcomes.append(manager.save(_state(value, mib=6), step=1))
            except Conflict as error:
                outcomes.append(error)

    threads = [threading.Thread(target=run, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CheckpointInfo", "Conflict"]
    assert CheckpointManager(prefix, storage=_options()).verify(1).verified


def test_ranks_meet_through_the_bucket_itself(prefix: str) -> None:
    infos: dict[int, CheckpointInfo] = {}

    def run(rank: int) -> None:
        store = open_store(prefix, _options())
        coordinator = StoreCommit(store, rank=rank, ranks=(0, 1), generation=1)
        with CheckpointManager(store, coordinator=coordinator, rank=rank, world_size=2) as manager:
            infos[rank] = manager.save({"x": np.full(10, rank)}, step=1)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert infos[0].id == infos[1].id
    assert CheckpointManager(prefix, storage=_options()).load(1, rank=1, world_size=2)["x"][0] == 1


def test_wrong_credentials_and_a_missing_bucket_give_advice(prefix: str) -> None:
    with (
        pytest.raises(StorageAccessDenied) as denied,
        CheckpointManager(prefix, storage=_options(secret_access_key="wrong")) as manager,
    ):
        manager.save(b"x", step=1)
    assert "Verify .env or IAM Role permissions" in denied.value.hint
    with pytest.raises(StorageNotFound) as missing:
        CheckpointManager("s3://no-such-bucket/x", storage=_options()).get_latest()
    assert "no-such-bucket" in missing.value.hint


def test_kill_in_the_middle_of_a_multipart_upload(prefix: str) -> None:
    """A real process dies with parts in flight; the next one resumes, and the half upload is thrown away."""
    script = Path(__file__).with_name("training.py")
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": seaweed().endpoint_url,
    }

    def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), prefix, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)

    assert launch("--fault", "data_sent:kill@2").returncode == 9
    manager = CheckpointManager(prefix, storage=_options())
    assert [info.step for info in manager.list()] == [1]
    resumed = launch()
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout) == {"rank": 0, "began": 1, "ended": 3}
    assert manager.verify(3).verified
    store = open_store(prefix, _options())
    assert isinstance(store, HoldsUploads)
    assert store.abort_uploads(older_than_s=-5) <= 1  # a part may not have left before the kill
    assert store.abort_uploads(older_than_s=-5) == 0


def _is_part(number: int) -> Any:
    return lambda method, target: method == "PUT" and f"partNumber={number}" in target


@pytest.mark.parametrize("action", ["503", "reset", "slow"])
@pytest.mark.parametrize("part", [1, 3])
def test_trouble_on_one_part_is_survived(prefix: str, action: str, part: int) -> None:
    trouble = Trouble(_is_part(part), action)
    with Proxy(seaweed().endpoint_url, trouble) as proxy:
        options = _options(endpoint_url=proxy.url)
        with CheckpointManager(prefix, storage=options) as manager:
            manager.save(_state(7.0), step=1)
            assert trouble.hits == 1
            assert manager.verify(1).verified


def test_a_lost_answer_to_the_commit_is_recognised_as_our_own(prefix: str) -> None:
    trouble = Trouble(lambda method, target: method == "PUT" and target.endswith("COMMIT.json"), "lose")
    with Proxy(seaweed().endpoint_url, trouble) as proxy:
        with CheckpointManager(prefix, storage=_options(endpoint_url=proxy.url)) as manager:
            info = manager.save(b"state", step=1)
        assert trouble.hits == 1
    assert CheckpointManager(prefix, storage=_options()).show(1).id == info.id


def test_trouble_without_end_fails_the_save_and_keeps_the_one_before(prefix: str) -> None:
    with CheckpointManager(prefix, storage=_options()) as manager:
        manager.save(_state(1.0), step=1)
    trouble = Trouble(_is_part(2), "503", times=1000)
    with Proxy(seaweed().endpoint_url, trouble) as proxy:
        options = _options(endpoint_url=proxy.url, max_retries=2)
        manager = CheckpointManager(prefix, storage=options, keep_count=1)
        handle = manager.save_async(_state(2.0), step=2)
        with pytest.raises(StorageError, match=r"rank-00000\.safetensors"):
            handle.result(60)
        manager.close()
        latest = manager.get_latest()
        assert latest is not None
        assert latest.step == 1
        assert np.array_equal(manager.load()["w"], _state(1.0)["w"])
    uploads = LOCAL.get(f"{seaweed().filer_url}/buckets/{_BUCKET}/.uploads/", headers={"Accept": "application/json"})
    assert uploads.status_code == 404 or uploads.json()["Entries"] is None  # the half upload was aborted


@pytest.fixture
def careless_store(tmp_path: Path) -> Iterator[StorageOptions]:
    """rclone's S3 server overwrites whatever If-None-Match says."""
    (tmp_path / "data" / _BUCKET).mkdir(parents=True)
    port = free_ports(1)[0]
    command = [str(Path(sysconfig.get_path("scripts")) / "rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}"]
    command += ["--auth-key", "key,secret-key", "--config", str(tmp_path / "rclone.conf"), str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 15
        while True:
            try:
                httpx.get(url, timeout=1)
                break
            except httpx.HTTPError:
                assert time.monotonic() < until, "rclone did not start"
                time.sleep(0.05)
        yield StorageOptions(region="us-east-1", access_key_id="key", secret_access_key="secret-key", endpoint_url=url)
    finally:
        process.kill()  # it would take seconds to say goodbye
        process.wait(10)


def test_a_store_that_ignores_conditions_is_found_out(
    careless_store: StorageOptions, caplog: pytest.LogCaptureFixture
) -> None:
    with CheckpointManager(f"s3://{_BUCKET}/run", storage=careless_store) as manager:
        with caplog.at_level(logging.WARNING):
            manager.save(_state(1.0, mib=1), step=1)
        assert manager.conditional_writes is False
        assert "ignores conditional writes" in caplog.text
        with pytest.raises(Conflict, match="committed already"):
            manager.save(_state(9.0, mib=1), step=1)
        assert manager.load()["step"] == 1.0
        assert manager.verify(1).verified

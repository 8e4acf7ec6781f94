"""What the observatory takes of cores that others want, too."""

import os
from pathlib import Path

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("priority", "policy", "nicer"), [("normal", os.SCHED_BATCH, 5), ("background", os.SCHED_IDLE, 0)]
)
def test_the_store_runs_as_its_parent_was_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, priority: str, policy: int, nicer: int
) -> None:
    monkeypatch.setenv("STRATA_OBSERVATORY_PRIORITY", priority)
    process = ObservatoryProcess(tmp_path).start()
    try:
        wait_until(lambda: process.get("/api/status")["metric_store_ready"], "the store")
        store = process.store_pid()
        assert store is not None
        engine = [int(thread.name) for thread in Path(f"/proc/{store}/task").iterdir()]
        assert {os.sched_getscheduler(thread) for thread in (process.pid, *engine)} == {policy}
        nice = min(os.getpriority(os.PRIO_PROCESS, 0) + nicer, 19)
        # Of its threads one is raised by the engine itself, where it may.
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in (process.pid, store)} == {nice}
    finally:
        process.dispose()

"""Loss curves of an example that trains in a real cluster, undisturbed, killed and stopped: they must be equal."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for
from tests.support.picture import keep_picture

__all__ = ["Curves", "Examples"]

Curves = dict[int, dict[int, float]]
"""By rank: the value of each step."""

_FOLDER = Path(__file__).resolve().parents[2] / "examples"
_PICTURES = os.environ.pop("STRATA_PICTURES", "")  # popped: a script alone refuses settings it does not know
_PATIENCE_S = 280.0  # beside busy neighbours; a framework's import alone takes seconds per process


class Examples:
    """Runs one example of the folder, as a task or alone. The cluster is started by who makes this."""

    def __init__(
        self,
        nodes: Nodes,
        name: str,
        command: tuple[str, ...],
        *,
        ranks: int = 2,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._nodes = nodes
        self._name = name
        self._command = (sys.executable, str(_FOLDER / command[0]), *command[1:])
        self._ranks = ranks
        self._environment = {"OMP_NUM_THREADS": "1", **(environment or {})}

    def calm(self) -> Curves:
        task_id = self._submit("calm")
        return self._finished(task_id)

    def killed(self) -> Curves:
        """The last rank gets kill -9 after a checkpoint of its second epoch; the task goes on from it."""
        task_id = self._submit("killed")
        self._wait_saved(task_id, 40)
        before = self._nodes.task(task_id).attempt  # not always 1: a neighbour may have had the port of the ranks
        os.kill(self._nodes.rank_pids(task_id)[self._ranks - 1], signal.SIGKILL)
        found = self._finished(task_id)
        assert self._nodes.task(task_id).attempt > before
        if _PICTURES:
            keep_picture(f"{self._nodes.http}/ui/runs/{task_id}", Path(_PICTURES) / f"framework-{self._name}.png")
        return found

    def stopped(self) -> Curves:
        """The task is stopped, which saves at an agreed step, and resumed from that very step."""
        task_id = self._submit("stopped")
        self._wait_saved(task_id, 10)
        self._nodes.tasks().stop(task_id)
        task = self._nodes.wait_task(task_id, timeout_s=_PATIENCE_S)
        assert task.status is TaskStatus.STOPPED, task.reason
        steps = self._nodes.records().checkpoints.latest(task_id)
        assert steps is not None
        assert all(max(curve) in (steps.step, steps.step - 1) for curve in self._curves(task_id).values())
        self._nodes.tasks().resume(task_id)
        return self._finished(task_id)

    def killed_alone(self, folder: Path) -> tuple[Curves, Curves]:
        """Without a task: a run that nothing happens to, and one that is killed after a checkpoint and started again,
        as two runs whose points are put together."""
        calm = self._alone(folder / "calm", f"{self._name}-calm-alone")
        again, killed = folder / "again", f"{self._name}-killed-alone"
        with self._start(again, killed) as process:
            wait_for(lambda: list(again.glob("step-*70/COMMIT.json")), _PATIENCE_S, "a checkpoint of the second epoch")
            process.kill()
        sync = [sys.executable, "-m", "strata", "sync", killed, "--data-dir", str(self._nodes.data_dir)]
        subprocess.run(sync, check=True)  # what it had not sent
        before = self._curves(killed)
        after = self._alone(again, f"{self._name}-resumed-alone")
        assert 0 < min(after[0]) <= max(before[0]) + 1, "it went on from the checkpoint"
        return calm, {0: {**before[0], **after[0]}}

    def _alone(self, checkpoints: Path, run_id: str) -> Curves:
        with self._start(checkpoints, run_id) as process:
            assert process.wait(_PATIENCE_S) == 0
        return self._curves(run_id)

    def _start(self, checkpoints: Path, run_id: str) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "STRATA_DATA_DIR": str(self._nodes.data_dir), **self._environment}
        command = [*self._command, "--checkpoints", str(checkpoints), "--run-id", run_id]
        return subprocess.Popen(command, env=environment, cwd=self._nodes.data_dir.parent)

    def _submit(self, name: str) -> str:
        return self._nodes.submit(
            name=f"{self._name}-{name}",
            type="script",
            entrypoint=self._command,
            worker_count=self._ranks,
            max_restarts=3,
            env=self._environment,
            working_dir=str(self._nodes.data_dir.parent),
        )

    def _wait_saved(self, task_id: str, step: int) -> None:
        def saved() -> bool:
            latest = self._nodes.records().checkpoints.latest(task_id)
            return latest is not None and latest.step >= step

        wait_for(saved, _PATIENCE_S, f"a checkpoint of step {step}")

    def _finished(self, task_id: str) -> Curves:
        task = self._nodes.wait_task(task_id, timeout_s=_PATIENCE_S)
        assert task.status is TaskStatus.COMPLETED, (
            f"{task.reason}\n{self._nodes.output(task_id, task.attempt, 0, 'stderr')}"
        )
        return self._curves(task_id)

    def _curves(self, run_id: str) -> Curves:
        found: dict[str, Any] = wait_for(
            lambda: self._nodes.get(f"/metrics/{run_id}?metric=loss&points=2000"), 60, f"the points of {run_id}"
        )
        return {one["rank"]: dict(zip(one["steps"], one["values"], strict=True)) for one in found["series"]}

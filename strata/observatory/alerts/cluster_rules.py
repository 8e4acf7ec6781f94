"""Watches the cluster: what its events say, and what its vitals and the silence of runs mean. Time is an argument."""

from collections.abc import Mapping
from statistics import median

from strata.cluster import events as e
from strata.cluster.barriers import barrier_key
from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.workers import Worker
from strata.observatory.records.finding import Finding
from strata.types.tasks import TaskStatus

__all__ = ["ClusterDetector", "find_stalled", "from_event"]

_STRAGGLER = 1.5
_STRAGGLER_CHECKS = 5
_MIN_RANKS = 3
_MIN_SILENCE_S = 60.0
_MAX_SILENCE_S = 3600.0


def from_event(event: e.Event) -> list[Finding]:
    """Events that people want to be told of."""
    match event:
        case e.MembersLost() if not event.left:
            return [
                Finding.of_task(
                    event.task_id,
                    kind="worker_lost",
                    severity="critical",
                    message=f"worker {worker_id} is lost: {reason}",
                    subject=f"{worker_id}/{event.generation}",
                    worker_id=worker_id,
                )
                for worker_id, reason in zip(event.worker_ids, event.reasons, strict=True)
            ]
        case e.CheckpointAborted():
            text = f"a checkpoint was given up: {event.reason}"
            return [Finding(kind="checkpoint_failed", severity="warning", message=text, subject=event.attempt)]
        case e.CheckpointVerified() if event.damage:
            text, about = f"checkpoint {event.checkpoint_id} is damaged: {event.damage}", event.checkpoint_id
            told = {"kind": "checkpoint_damaged", "severity": "critical", "subject": about, "step": event.step}
        case e.BarrierBroke():
            text = f"barrier {event.barrier_id} broke: {event.reason}"
            about = barrier_key(event.task_id, event.barrier_id, event.step, event.round)
            told = {"kind": "barrier_broken", "severity": "warning", "subject": about, "step": event.step}
        case e.TaskChanged(status=TaskStatus.FAILED):
            text = f"task {event.task_id} failed: {event.reason}"
            told = {"kind": "task_failed", "severity": "critical", "subject": event.task_id}
        case e.TaskChanged(status=TaskStatus.RUNNING) if event.stuck_rank is not None:
            text, about = f"task {event.task_id} hangs: {event.reason}", f"{event.task_id}/{event.attempt}"
            told = {"kind": "hang", "severity": "critical", "subject": about, "rank": event.stuck_rank}
            told["step"] = event.stuck_step
        case _:
            return []
    return [Finding.of_task(event.task_id, message=text, **told)]


class ClusterDetector:
    """Late heartbeats and stragglers, from the workers list as REST shows it."""

    def __init__(self) -> None:
        self._slow: dict[str, int] = {}

    def check(self, workers: list[Worker]) -> list[Finding]:
        """Called every few seconds."""
        return [*self._late(workers), *self._stragglers(workers)]

    def _late(self, workers: list[Worker]) -> list[Finding]:
        late = [worker for worker in workers if worker.member_state == "suspect"]
        return [
            _about(one, "late_heartbeat", f"worker {one.id} (rank {one.rank}) has not been heard of lately")
            for one in late
        ]

    def _stragglers(self, workers: list[Worker]) -> list[Finding]:
        by_task: dict[str, list[tuple[float, Worker]]] = {}
        for worker in workers:
            if worker.step_time_s and worker.status == "active" and not worker.section:
                by_task.setdefault(worker.current_task or "", []).append((worker.step_time_s, worker))
        found, slow_now = [], set()
        for group in by_task.values():
            if len(group) < _MIN_RANKS:
                continue
            usual = median(step_time for step_time, _ in group)
            for step_time, worker in group:
                if step_time > _STRAGGLER * usual:
                    slow_now.add(worker.id)
                    self._slow[worker.id] = self._slow.get(worker.id, 0) + 1
                    if self._slow[worker.id] == _STRAGGLER_CHECKS:
                        times = f"{step_time / usual:.1f} times as long per step as the median"
                        found.append(_about(worker, "straggler", f"rank {worker.rank} ({worker.id}) takes {times}"))
        for worker_id in [known for known in self._slow if known not in slow_now]:
            del self._slow[worker_id]
        return found


def _about(worker: Worker, kind: str, message: str) -> Finding:
    return Finding.of_task(
        worker.current_task,
        kind=kind,
        severity="warning",
        message=message,
        subject=f"{worker.id}/{worker.incarnation}",
        worker_id=worker.id,
        rank=worker.rank,
        step=worker.current_step,
    )


def find_stalled(runs: list[RunInfo], tasks: Mapping[str, str], now_ms: int) -> list[Finding]:
    """Runs that go on and have been silent far longer than usual. `tasks` are the statuses of all tasks: a task knows
    whether its run goes on; a run without one does while it says so and was heard of lately."""
    found = []
    for run in runs:
        task = tasks.get(run.task_id or run.run_id)
        running = run.is_active and (task == "running" if task is not None else run.status == "running")
        if not running or run.last_event_time_ms is None or run.start_time_ms is None:
            continue
        silence_s = (now_ms - run.last_event_time_ms) / 1000
        rows = max(1, run.num_points // max(1, run.num_series))
        usual_s = (run.last_event_time_ms - run.start_time_ms) / 1000 / rows
        if max(_MIN_SILENCE_S, 10 * usual_s) < silence_s < _MAX_SILENCE_S:
            where = "" if run.latest_step is None else f" (step {run.latest_step})"
            text = f"run {run.run_id} has sent nothing for {silence_s:.0f} s{where}"
            found.append(
                Finding(
                    kind="stalled_run",
                    severity="warning",
                    message=text,
                    subject=f"{run.run_id}/{run.last_event_time_ms}",
                    run_id=run.run_id,
                    task_id=run.task_id,
                    step=run.latest_step,
                )
            )
    return found

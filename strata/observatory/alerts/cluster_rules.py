"""Watches the cluster: what its events say, and what its vitals and the silence of runs mean. Time is an argument."""

from collections.abc import Mapping
from itertools import groupby

from strata.cluster import events as e
from strata.cluster.barriers import barrier_key
from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.workers import Worker
from strata.observatory.records.finding import Finding
from strata.types.tasks import TaskStatus

__all__ = ["find_late", "find_stalled", "from_event"]

_MIN_SILENCE_S = 60.0
_MAX_SILENCE_S = 3600.0
# More workers than this share one alert: a fleet that is cut off must not bury what else is wrong.
_ONE_BY_ONE = 16


def from_event(event: e.Event) -> list[Finding]:
    """Events that people want to be told of."""
    match event:
        case e.MembersLost() if not event.left and len(event.worker_ids) > _ONE_BY_ONE:
            first, about = event.worker_ids[0], f"{event.task_id}/{event.generation}"
            text = f"{len(event.worker_ids):,} workers are lost, the first of them {first}: {event.reasons[0]}"
            lost = {"kind": "worker_lost", "severity": "critical", "subject": about, "worker_id": first}
            return [Finding.of_task(event.task_id, message=text, **lost)]
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
        case e.TaskChanged(status=TaskStatus.RUNNING) if event.slow_rank is not None:
            text, about = f"task {event.task_id} is slow: {event.reason}", f"{event.task_id}/{event.attempt}"
            told = {"kind": "straggler", "severity": "warning", "subject": f"{about}/{event.slow_rank}"}
            told["rank"] = event.slow_rank
        case _:
            return []
    return [Finding.of_task(event.task_id, message=text, **told)]


def find_late(workers: list[Worker]) -> list[Finding]:
    """Workers that should have been heard of, from the list as REST shows it."""
    by_task = groupby(sorted(workers, key=_task_of), key=_task_of)
    return [finding for task_id, late in by_task for finding in _late(task_id, list(late))]


def _task_of(worker: Worker) -> str:
    return worker.current_task or ""


def _late(task_id: str, workers: list[Worker]) -> list[Finding]:
    if len(workers) > _ONE_BY_ONE:
        first = min(workers, key=lambda worker: worker.rank)
        text = (
            f"{len(workers):,} workers have not been heard of lately, the first of them {first.id} (rank {first.rank})"
        )
        about = f"{task_id}/{first.generation}/many"
        told = {"kind": "late_heartbeat", "severity": "warning", "subject": about, "worker_id": first.id}
        return [Finding.of_task(task_id, message=text, **told)]
    return [
        Finding.of_task(
            worker.current_task,
            kind="late_heartbeat",
            severity="warning",
            message=f"worker {worker.id} (rank {worker.rank}) has not been heard of lately",
            subject=f"{worker.id}/{worker.incarnation}",
            worker_id=worker.id,
            rank=worker.rank,
            step=worker.current_step,
        )
        for worker in workers
        if worker.member_state == "suspect"
    ]


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

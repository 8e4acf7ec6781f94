"""Decisions about tasks, each with its reason: where a gang of ranks goes, what a rank's end means, when to try again.

Pure: what is known is an argument, and so are time and chance. Nothing here starts or stops anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from strata.coordinator.state.now import Now
from strata.coordinator.state.tasks import Task
from strata.types.tasks import TaskCourse, TaskStatus

__all__ = [
    "Decision",
    "Host",
    "Lacking",
    "Placement",
    "RankEnd",
    "plan_end",
    "plan_gang",
    "plan_queue",
    "plan_restart",
    "plan_stopped",
]

MAX_STALLED = 3
_FOLLOWED_EXIT = 75  # of a rank whose place was taken, or that lost a peer
_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent that takes ranks: how many slots it offers, and how many of them are held now."""

    agent_id: str
    address: str
    slots: int
    held: int = 0
    launcher: str = "local"

    @property
    def free(self) -> int:
        return max(0, self.slots - self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The agent of each rank."""

    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Why a gang cannot be placed now; `ever` is False when all slots together would not do."""

    reason: str
    ever: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """How a rank's process ended. An unknown exit code is None; `preempted` ends are nobody's failure."""

    rank: int
    exit_code: int | None
    message: str = ""
    preempted: bool = False
    unstarted: bool = False

    @property
    def well(self) -> bool:
        return self.exit_code == 0 and not self.preempted

    def __str__(self) -> str:
        if self.unstarted:
            how = "could not be started"
        elif self.exit_code is None:
            how = "ended unseen"
        elif self.exit_code < 0:
            how = f"was killed by signal {-self.exit_code}"
        else:
            how = f"exited with code {self.exit_code}"
        return f"rank {self.rank} {how}" + (f": {self.message}" if self.message else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a task becomes, and why."""

    status: TaskStatus
    reason: str
    attempt: int
    course: TaskCourse


def plan_gang(num_ranks: int, launcher: str, hosts: Sequence[Host], before: Sequence[str] = ()) -> Placement | Lacking:
    """All ranks or none. Ranks go back to the hosts they had `before` where those have room; else on as few hosts as
    will do, neighbours together."""
    usable = [host for host in hosts if host.launcher == launcher]
    free = {host.agent_id: host.free for host in usable}
    if sum(free.values()) < num_ranks:
        return _lacking(num_ranks, launcher, usable)
    kept = _keep(before, free) if len(before) == num_ranks else [None] * num_ranks
    rest = sorted(
        (host for host in usable if free[host.agent_id]), key=lambda host: (-free[host.agent_id], host.agent_id)
    )
    spare = [host.agent_id for host in rest for _ in range(free[host.agent_id])]
    filled = iter(spare)
    return Placement(agents=tuple(agent if agent is not None else next(filled) for agent in kept))


def _keep(before: Sequence[str], free: dict[str, int]) -> list[str | None]:
    """The old host of each rank where it has room; takes that room out of `free`."""
    kept: list[str | None] = []
    for agent_id in before:
        room = free.get(agent_id, 0)
        kept.append(agent_id if room else None)
        if room:
            free[agent_id] = room - 1
    return kept


def _lacking(num_ranks: int, launcher: str, usable: Sequence[Host]) -> Lacking:
    slots = sum(host.slots for host in usable)
    free = sum(host.free for host in usable)
    if not usable:
        return Lacking(reason=f"waiting for {num_ranks} slots: no {launcher} agent is attached", ever=False)
    on = f"{len(usable)} {launcher} agent{'s' if len(usable) > 1 else ''}"
    if slots < num_ranks:
        short = num_ranks - slots
        return Lacking(reason=f"needs {num_ranks} slots, {on} offer {slots}: {short} more are needed", ever=False)
    return Lacking(reason=f"waiting for {num_ranks} slots: {free} of {slots} are free on {on}", ever=True)


def plan_queue(queued: Iterable[Task], hosts: Sequence[Host]) -> dict[str, Placement | Lacking]:
    """First come, first served: a task that fits the cluster but not now holds back those behind it, so that it is
    not starved; one that the cluster is too small for holds back nobody."""
    planned: dict[str, Placement | Lacking] = {}
    blocked: dict[str, str] = {}
    current = {host.agent_id: host for host in hosts}
    for task in queued:
        launcher = task.spec.launcher
        if launcher in blocked:
            planned[task.task_id] = Lacking(reason=f"waiting behind task {blocked[launcher]}", ever=True)
            continue
        plan = plan_gang(task.spec.worker_count, launcher, list(current.values()))
        planned[task.task_id] = plan
        if isinstance(plan, Lacking):
            if plan.ever:
                blocked[launcher] = task.task_id
            continue
        for agent_id in plan.agents:
            current[agent_id] = replace(current[agent_id], held=current[agent_id].held + 1)
    return planned


def plan_end(task: Task, ends: Mapping[int, RankEnd], step: int, now: Now, chance: float) -> Decision | None:
    """What the ends of a running task's ranks mean; None while it simply runs on. `step` is the newest committed
    checkpoint's (-1: none), `chance` between 0 and 1 spreads retries."""
    bad = [ends[rank] for rank in sorted(ends) if not ends[rank].well]
    if not bad:
        if len(ends) < task.spec.worker_count:
            return None
        reason = f"all {task.spec.worker_count} ranks finished"
        return Decision(status=TaskStatus.COMPLETED, reason=reason, attempt=task.attempt, course=task.course)
    blamed = _blamed(bad)
    advanced = step > task.course.step
    course = replace(
        task.course,
        failures=task.course.failures + (not blamed.preempted),
        preemptions=task.course.preemptions + blamed.preempted,
        stalled=0 if advanced or blamed.preempted else task.course.stalled + 1,
    )
    given_up = _given_up(task, blamed, course)
    if given_up:
        return Decision(status=TaskStatus.FAILED, reason=given_up, attempt=task.attempt, course=course)
    delay = 0.0 if not course.stalled else min(_MAX_BACKOFF_S, _BACKOFF_S * 2 ** (course.stalled - 1)) * (0.5 + chance)
    resume = f"step {step}" if step >= 0 else "the start"
    return Decision(
        status=TaskStatus.RECOVERING,
        reason=f"{blamed}; all ranks go back to {resume}",
        attempt=task.attempt,
        course=replace(course, retry_at=now.wall + delay),
    )


def _blamed(bad: Sequence[RankEnd]) -> RankEnd:
    """The end that says most: one that never started, a real exit before one nobody saw or one that only followed
    another's death, a preemption last."""
    return min(
        bad, key=lambda end: (not end.unstarted, end.preempted, end.exit_code in (None, _FOLLOWED_EXIT), end.rank)
    )


def _given_up(task: Task, blamed: RankEnd, course: TaskCourse) -> str:
    """Why there is no further attempt, or nothing."""
    if blamed.preempted:
        return ""
    if blamed.unstarted:
        return str(blamed)
    if course.failures > task.spec.max_restarts:
        return f"{blamed}; its {task.spec.max_restarts} restarts are used up"
    if course.stalled >= MAX_STALLED:
        return f"{blamed}; {course.stalled} attempts in a row brought no new checkpoint"
    return ""


def plan_restart(task: Task, hosts: Sequence[Host], step: int, now: Now) -> Decision | None:
    """The next attempt of a task whose last one has ended everywhere, or the news that it lacks slots; None while it
    has to wait for its turn."""
    if now.wall < task.course.retry_at:
        return None
    plan = plan_gang(task.spec.worker_count, task.spec.launcher, hosts, task.course.placement)
    if isinstance(plan, Lacking):
        return Decision(status=TaskStatus.RECOVERING, reason=plan.reason, attempt=task.attempt, course=task.course)
    attempt = task.attempt + 1
    resume = f", resumes from step {step}" if step >= 0 else ""
    return Decision(
        status=TaskStatus.RUNNING,
        reason=f"attempt {attempt}{resume}",
        attempt=attempt,
        course=replace(task.course, placement=plan.agents, step=step),
    )


def plan_stopped(task: Task, ends: Mapping[int, RankEnd]) -> Decision | None:
    """A stopping task has stopped when no rank is left."""
    if len(ends) < task.spec.worker_count:
        return None
    killed = [end.rank for end in ends.values() if end.exit_code == -9]
    note = f"; ranks {killed} had to be killed" if killed else ""
    return Decision(status=TaskStatus.STOPPED, reason=f"{task.reason}{note}", attempt=task.attempt, course=task.course)

"""Decides why a task stands as it does: the first cause, who was hit, what it cost, and what to do. Pure: what is known
is an argument. It blames nobody on a guess: where what was seen does not say who began, the verdict is `unknown`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from strata.cluster.tasks import Task
from strata.observatory.answers.why import Evidence, Verdict, VerdictKind
from strata.observatory.cluster.advice import ADVICE
from strata.observatory.cluster.timeline import Facts, Interruption, Timeline, redone_s
from strata.observatory.records.fill import fill
from strata.types.faults import Fault, FaultKind, first_cause
from strata.types.tasks import TaskStatus

__all__ = ["BadPoint", "Case", "plan_interruption", "plan_verdict"]

# Kinds of faults that have another name as a verdict; all others are called the same.
_RENAMED = {
    FaultKind.UNSTARTED: VerdictKind.CANNOT_START,
    FaultKind.HINDERED: VerdictKind.CANNOT_START,
    FaultKind.TOLD: VerdictKind.ASKED_TO_STOP,
    FaultKind.ASKED: VerdictKind.ASKED_TO_STOP,
    FaultKind.DRAINED: VerdictKind.HOST_DRAINED,
    FaultKind.FOLLOWED: VerdictKind.UNKNOWN,
    FaultKind.UNSEEN: VerdictKind.UNKNOWN,
}
_BY_EXCEPTION = {
    "ImportError": VerdictKind.IMPORT_ERROR,
    "ModuleNotFoundError": VerdictKind.IMPORT_ERROR,
    "SyntaxError": VerdictKind.IMPORT_ERROR,
    "IndentationError": VerdictKind.IMPORT_ERROR,
    "usage": VerdictKind.USAGE,
    "InvalidConfig": VerdictKind.USAGE,
    "MemoryError": VerdictKind.OUT_OF_MEMORY,
    "OutOfMemoryError": VerdictKind.OUT_OF_MEMORY,
    "StorageFull": VerdictKind.DISK_FULL,
    "StorageAccessDenied": VerdictKind.STORAGE_REFUSED,
}
_NEVER_WORKED = frozenset({VerdictKind.IMPORT_ERROR, VerdictKind.USAGE, VerdictKind.CANNOT_START})
_NO_SPACE = re.compile(r"\[Errno 28\]|No space left on device")
_NOT_FINITE = re.compile(r"(?i)\b(nan|inf|infinity|non-?finite|not finite|infinite)\b|diverge")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadPoint:
    """The first loss of an attempt that is no number: of the lowest step, and `rank` only when it was alone there."""

    metric: str
    value: str
    step: int
    rank: int | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that is known when the verdict is given. `interruption` is the one that is asked about; `went_on_at` is when
    work went on after one in place; `restarted_at` when the coordinator last started anew."""

    task: Task
    timeline: Timeline = field(default_factory=Timeline)
    facts: Mapping[int, Facts] = field(default_factory=dict)
    interruption: Interruption | None = None
    bad_point: BadPoint | None = None
    went_on_at: float | None = None
    saved_step: int | None = None
    restarted_at: float | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)
    now: float = 0.0


def plan_interruption(task: Task, timeline: Timeline, at: float | None = None) -> Interruption | None:
    """Which interruption a verdict is about: the one nearest to a moment, else the newest, unless the task stands still
    now or somebody stopped it since."""
    known = [timeline.interruptions[key] for key in sorted(timeline.interruptions)]
    if at is not None:
        return min(known, key=lambda one: abs(one.at - at), default=None)
    stopped = task.status in (TaskStatus.STOPPED, TaskStatus.STOPPING)
    stands = task.status is TaskStatus.RUNNING and task.course.stuck_rank is not None
    return known[-1] if known and not (stopped or stands) else None


def plan_verdict(case: Case) -> Verdict:
    """Of the interruption that is asked about, else of how the task stands now."""
    return _of_now(case) if case.interruption is None else _of_interruption(case, case.interruption)


def _of_now(case: Case) -> Verdict:
    """A task that was not interrupted, as far as anybody knows."""
    task, course = case.task, case.task.course
    restarted = case.restarted_at is not None and task.started_at is not None and case.restarted_at > task.started_at
    if task.status in (TaskStatus.STOPPED, TaskStatus.STOPPING):
        return _verdict(case, VerdictKind.STOPPED, f"The task was stopped: {task.reason}", at=task.completed_at)
    if task.status is TaskStatus.QUEUED:
        return _verdict(case, VerdictKind.WAITING, f"The task waits: {task.reason}")
    if task.status in (TaskStatus.FAILED, TaskStatus.RECOVERING):  # journaled by a release that knew no faults
        return _verdict(case, VerdictKind.UNKNOWN, f"Nobody noted what began it; the task says: {task.reason}")
    if task.status is TaskStatus.RUNNING and course.stuck_rank is not None:
        return _of_rank(case, VerdictKind.HANG, course.stuck_rank, course.stuck_step)
    if task.status is TaskStatus.RUNNING and course.slow_rank is not None:
        return _of_rank(case, VerdictKind.STRAGGLER, course.slow_rank, None)
    if restarted and task.status is TaskStatus.RUNNING:
        told = "The coordinator was started anew while the task ran; its ranks went on"
        return _verdict(case, VerdictKind.COORDINATOR_RESTARTED, told, at=case.restarted_at, seconds_lost=0.0)
    return _verdict(case, VerdictKind.NONE, f"Nothing has interrupted the task: it is {task.status}", seconds_lost=0.0)


def _of_rank(case: Case, kind: VerdictKind, rank: int, step: int | None) -> Verdict:
    """A rank that stands still or is slow now: the coordinator's own sentence names it."""
    placement = case.task.course.placement
    agent_id = placement[rank] if rank < len(placement) else ""
    others = _others(len(placement), rank)
    cause = _sentence(case.task.reason)
    return _verdict(case, kind, cause, rank=rank, agent_id=agent_id, step=step, hit=others, attempt=case.task.attempt)


def _of_interruption(case: Case, interruption: Interruption) -> Verdict:
    first = first_cause(interruption.faults)
    kind = _kind(first, case.bad_point) if first is not None else VerdictKind.UNKNOWN
    facts = case.facts.get(interruption.attempt, Facts())
    attempt = case.timeline.attempts.get(interruption.attempt)
    size = (attempt.size if attempt is not None else None) or len(case.task.course.placement)
    if first is None or kind is VerdictKind.UNKNOWN:
        rank, agent_id, cause = None, "", _unknown_cause(interruption.faults)
    else:
        rank, agent_id, cause = first.rank, first.agent_id, _cause(case, first, kind)
    if kind is VerdictKind.BAD_LOSS and case.bad_point is not None and case.bad_point.rank not in (None, rank):
        rank, agent_id = case.bad_point.rank, ""  # another rank only looked at the sum
    return _verdict(
        case,
        kind,
        cause,
        rank=rank,
        agent_id=agent_id,
        step=facts.top_step if not interruption.in_place else None,
        attempt=interruption.attempt,
        at=interruption.at,
        hit=_others(size, rank),
        seconds_lost=_seconds_lost(case, interruption, facts, kind),
        evidence=_evidence(case, interruption),
    )


def _cause(case: Case, fault: Fault, kind: VerdictKind) -> str:
    host, bad = case.hosts.get(fault.agent_id, fault.agent_id), case.bad_point
    if kind is VerdictKind.BAD_LOSS and bad is not None:
        return f"{_sentence(bad.metric)} became {bad.value} at step {bad.step}; then {fault.text}"
    if fault.kind is FaultKind.ASKED:
        return f"Somebody sent rank {fault.rank} SIGTERM"
    told = {
        VerdictKind.HOST_DRAINED: f"Host {host} goes away ({fault.text})",
        VerdictKind.HOST_LOST: f"Host {host} was lost with rank {fault.rank}",
        VerdictKind.STRAGGLER: f"Rank {fault.rank} held up the others: {fault.text}",
        VerdictKind.GROWN: f"The task grew: {fault.text}",
    }
    return told.get(kind) or _sentence(fault.text)


def _kind(fault: Fault, bad: BadPoint | None) -> VerdictKind:
    if fault.kind in (FaultKind.EXCEPTION, FaultKind.HINDERED, FaultKind.EXIT) and _NO_SPACE.search(fault.text):
        return VerdictKind.DISK_FULL
    told = fault.exception == "FloatingPointError" or _NOT_FINITE.search(fault.text) is not None
    if bad is not None and (fault.kind is FaultKind.EXIT or (fault.kind is FaultKind.EXCEPTION and told)):
        return VerdictKind.BAD_LOSS
    if fault.kind is FaultKind.EXCEPTION and fault.exception in _BY_EXCEPTION:
        return _BY_EXCEPTION[fault.exception]
    if fault.kind is FaultKind.EXIT and fault.exception == "usage":
        return VerdictKind.USAGE
    return _RENAMED.get(fault.kind) or VerdictKind(fault.kind)


def _unknown_cause(faults: Sequence[Fault]) -> str:
    told = "; ".join(fault.text for fault in faults[:3])
    return f"Nobody saw which rank ended first: {told}" if told else "Nobody saw what began it"


def _seconds_lost(case: Case, interruption: Interruption, facts: Facts, kind: VerdictKind) -> float | None:
    """Work behind the step that the next attempt went back to, and the time until it worked again. None when nobody
    measured it."""
    if interruption.in_place:
        return None if case.went_on_at is None else max(0.0, case.went_on_at - interruption.at)
    attempt = case.timeline.attempts.get(interruption.attempt)
    if attempt is None or attempt.ended_at is None:
        return None
    following = case.timeline.attempts.get(interruption.attempt + 1)
    back_to = following.resume_step if following is not None else case.saved_step
    redone = redone_s(attempt, facts, back_to)
    if redone is None:
        redone = attempt.ended_at - attempt.started_at if kind in _NEVER_WORKED else None
    if redone is None or (following is None and case.task.status.final):
        return redone
    began = case.facts.get(interruption.attempt + 1, Facts()).working_at
    until = began if began is not None else following.ended_at if following is not None else None
    return redone + max(0.0, (case.now if until is None else until) - attempt.ended_at)


def _evidence(case: Case, interruption: Interruption) -> list[Evidence]:
    at_ms = round(interruption.at * 1000)
    seen = [Evidence(source="agent", text=one.text, rank=one.rank, at_ms=at_ms) for one in interruption.faults]
    if case.bad_point is not None:
        bad = case.bad_point
        text = f"{bad.metric} was {bad.value} at step {bad.step}"
        seen.insert(0, Evidence(source="metric", text=text, rank=bad.rank, at_ms=round(bad.at * 1000)))
    attempt = case.timeline.attempts.get(interruption.attempt)
    if attempt is not None and attempt.ended_at is not None and attempt.reason:
        ended_ms = round(attempt.ended_at * 1000)
        seen.append(Evidence(source="coordinator", text=attempt.reason, rank=None, at_ms=ended_ms))
    if case.saved_step is not None:
        text = f"step {case.saved_step} is the newest checkpoint"
        seen.append(Evidence(source="checkpoint", text=text, rank=None, at_ms=None))
    return seen


def _verdict(
    case: Case,
    kind: VerdictKind,
    cause: str,
    *,
    agent_id: str = "",
    rank: int | None = None,
    step: int | None = None,
    attempt: int | None = None,
    at: float | None = None,
    hit: Sequence[int] = (),
    seconds_lost: float | None = None,
    evidence: Sequence[Evidence] = (),
) -> Verdict:
    task_id = case.task.task_id
    advice = ADVICE[kind].format(task=task_id)
    host = case.hosts.get(agent_id, agent_id) or None
    if host is not None and rank is not None and kind is not VerdictKind.HOST_LOST:
        cause = f"{cause} (on {host})"
    told = f"{cause}.{_cost(hit, seconds_lost, in_all=kind is VerdictKind.UNKNOWN)} {advice}"
    return fill(
        Verdict,
        task_id=task_id,
        kind=kind,
        sentence=told,
        cause=cause,
        advice=advice,
        rank=rank,
        host=host,
        step=step,
        attempt=attempt,
        at_ms=None if at is None else round(at * 1000),
        hit_ranks=list(hit),
        seconds_lost=seconds_lost,
        evidence=list(evidence),
    )


def _cost(hit: Sequence[int], seconds: float | None, *, in_all: bool) -> str:
    parts = []
    if hit:
        few = len(hit) <= 4
        names = ", ".join(map(str, hit)) if few else f"{len(hit)} {'ranks' if in_all else 'other ranks'}"
        parts.append(f"it interrupted {('rank ' if len(hit) == 1 else 'ranks ') if few else ''}{names}")
    if seconds is not None and (hit or seconds >= 0.5):
        parts.append(f"it cost {seconds:.0f} s" if seconds >= 0.5 else "it cost no work")
    told = " and ".join(parts)
    return f" {told[0].upper()}{told[1:]}." if told else ""


def _others(size: int, rank: int | None) -> list[int]:
    return [one for one in range(size) if one != rank]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

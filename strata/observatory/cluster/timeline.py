"""The timeline of a task: its attempts, why each ended, and where the wall time went. What is known is an argument.

Attempts are the coordinator's TaskChanged events. When an attempt began to work, how far it got and when it had reached
the step that the next one went back to are times of points. What ranks did meanwhile is sampled from their heartbeats:
at a barrier, inside `checkpoint` or another section, else training. What nobody measured is None, never 0.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from strata.observatory.answers.timeline import AttemptRow, TaskTimeline, TimeShares
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.records.fill import fill
from strata.types.faults import Fault, FaultKind, first_cause
from strata.types.tasks import TaskStatus

__all__ = ["Attempt", "Facts", "Interruption", "Timeline", "activity", "plan_shares", "redone_s", "timeline_view"]

_ENDED = frozenset({"completed", "failed", "stopped"})
# Ranks work before their first heartbeat tells of it, and after the last one: less than this of each attempt is the
# edge of what was seen, not a time in which nobody looked.
_EDGE_S = 4.0
_DOING = ("training", "barrier", "checkpoint", "section")
_MAX_INTERRUPTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the points of an attempt say, in Unix seconds: the first one, and when the step was reached that the next
    attempt went back to."""

    working_at: float | None = None
    top_step: int | None = None
    resumed_step_at: float | None = None


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One try. `status` is how it ended, or the task's status while it lasts; `size` is its number of ranks."""

    number: int
    started_at: float
    ended_at: float | None = None
    status: str = "running"
    reason: str = ""
    resume_step: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """The `number`th thing since it was submitted or resumed that made ranks of a task end or leave early. `in_place`:
    the attempt went on."""

    attempt: int
    number: int
    at: float
    faults: tuple[Fault, ...]
    in_place: bool = False


@dataclass(slots=True, kw_only=True)
class Timeline:
    """A fold of TaskChanged: the same event again, or an older one than the last, changes nothing."""

    attempts: dict[int, Attempt] = field(default_factory=dict)
    interruptions: dict[tuple[int, int], Interruption] = field(default_factory=dict)
    samples: dict[str, float] = field(default_factory=dict)  # seconds, by what ranks were seen doing
    watched_s: float = 0.0

    def change(self, status: str, number: int, reason: str, at: float, step: int, size: int | None = None) -> None:
        known = self.attempts.get(number)
        if status == "running" and known is None:
            resume = step if step >= 0 else None
            started = Attempt(number=number, started_at=at, reason=reason, resume_step=resume, size=size)
            self.attempts[number] = started
        elif known is not None and known.ended_at is None:
            if status == "recovering" or status in _ENDED:
                known.ended_at, known.status, known.reason = at, status, reason
            elif at >= known.started_at and status == "stopping":
                known.status, known.reason = status, reason

    def interrupt(self, interruption: Interruption) -> bool:
        """True for one that was not known; the oldest of very many are forgotten."""
        key = (interruption.attempt, interruption.number)
        if key in self.interruptions:
            return False
        self.interruptions[key] = interruption
        while len(self.interruptions) > _MAX_INTERRUPTIONS:
            self.interruptions.pop(min(self.interruptions))
        return True

    def watch(self, doing: Counter[str], seconds: float) -> None:
        """One look at all ranks of the task while it works."""
        total = doing.total()
        if total:
            self.watched_s += seconds
            for name, count in doing.items():
                self.samples[name] = self.samples.get(name, 0.0) + count / total * seconds

    def restore(self, samples: Mapping[str, float], watched_s: float) -> None:
        """What was seen before this process began."""
        self.watched_s += watched_s
        for name, seconds in samples.items():
            self.samples[name] = self.samples.get(name, 0.0) + seconds


def activity(vitals: WorkerVitals) -> str:
    """What a rank is doing: training, barrier, checkpoint or section."""
    if vitals.at_barrier:
        return "barrier"
    if vitals.section == "checkpoint" or vitals.state == "checkpointing":
        return "checkpoint"
    return "section" if vitals.section else "training"


def plan_shares(timeline: Timeline, facts: dict[int, Facts], now: float) -> TimeShares | None:
    """Seconds of wall time since the first start, by what they went into; the parts add up to `wall_s`."""
    ordered = [timeline.attempts[number] for number in sorted(timeline.attempts)]
    if not ordered:
        return None
    starting, recovering, lost, work = 0.0, 0.0, 0.0, 0.0
    for place, attempt in enumerate(ordered):
        end = attempt.ended_at if attempt.ended_at is not None else now
        known = facts.get(attempt.number, Facts())
        working = _working(attempt, known, end)
        before = ordered[place - 1] if place else None
        if before is None or before.status in _ENDED:  # submitted, or resumed: in between it was nobody's time
            starting += working - attempt.started_at
        else:
            recovering += working - (before.ended_at if before.ended_at is not None else attempt.started_at)
        work += end - working
        lost += _lost(timeline, attempt, known) or 0.0
    last = ordered[-1]
    if last.status == "recovering" and last.ended_at is not None:
        recovering += now - last.ended_at
    useful = max(0.0, work - lost)
    seen, doing = _seen(timeline, useful)
    return TimeShares(
        wall_s=starting + recovering + work,
        starting_s=starting,
        recovering_s=recovering,
        lost_s=lost,
        unmeasured_s=useful - seen,
        **{f"{name}_s": doing.get(name) for name in _DOING},
    )


def _working(attempt: Attempt, facts: Facts, end: float) -> float:
    """When the attempt began to work. One that logged no point has not begun while it lasts; once it has ended nobody
    can tell, and all of it counts as work that nobody measured."""
    if facts.working_at is not None:
        return min(max(facts.working_at, attempt.started_at), end)
    return end if attempt.ended_at is None else attempt.started_at


def _seen(timeline: Timeline, useful: float) -> tuple[float, dict[str, float]]:
    """How much of the useful time was watched, and what ranks were seen doing in it; nothing when nobody looked."""
    watched = sum(timeline.samples.values())
    if watched <= 0:
        return 0.0, {}
    edges = max(_EDGE_S * len(timeline.attempts), useful / 20)
    seen = useful if useful - timeline.watched_s < edges else min(useful, timeline.watched_s)
    return seen, {name: seen * timeline.samples.get(name, 0.0) / watched for name in _DOING}


def _lost(timeline: Timeline, attempt: Attempt, facts: Facts) -> float | None:
    """How long the attempt worked behind the step that the next one went back to: the next one does this work again.
    None while there is no next attempt, and when this one logged no point."""
    following = timeline.attempts.get(attempt.number + 1)
    return None if following is None else redone_s(attempt, facts, following.resume_step)


def redone_s(attempt: Attempt, facts: Facts, back_to: int | None) -> float | None:
    """How long an ended attempt worked behind this step; None when it logged no point."""
    if attempt.ended_at is None or facts.working_at is None:
        return None
    if facts.top_step is not None and (back_to or 0) >= facts.top_step:
        return 0.0  # it had saved its last step, and only left
    return max(0.0, attempt.ended_at - max(facts.resumed_step_at or facts.working_at, facts.working_at))


def timeline_view(task_id: str, timeline: Timeline, facts: dict[int, Facts], now: float) -> TaskTimeline:
    """The answer of GET /api/tasks/{id}/course."""
    shares = plan_shares(timeline, facts, now)
    ordered = [timeline.attempts[number] for number in sorted(timeline.attempts)]
    rows = [_row(timeline, attempt, facts.get(attempt.number, Facts())) for attempt in ordered]
    goodput = None
    if shares is not None and shares.training_s is not None and shares.wall_s:
        goodput = 100.0 * shares.training_s / shares.wall_s
    return TaskTimeline(task_id=task_id, attempts=rows, shares=shares, goodput_percent=goodput)


def _row(timeline: Timeline, attempt: Attempt, facts: Facts) -> AttemptRow:
    following = timeline.attempts.get(attempt.number + 1)
    back_to = following.resume_step if following is not None else None
    redone = facts.top_step - (back_to or 0) if facts.top_step is not None and following is not None else None
    return fill(
        AttemptRow,
        attempt,
        facts,
        attempt=attempt.number,
        status=TaskStatus(attempt.status),
        ended_by=_ended_by(timeline, attempt),
        lost_steps=None if redone is None else max(0, redone),
        lost_s=_lost(timeline, attempt, facts),
    )


def _ended_by(timeline: Timeline, attempt: Attempt) -> FaultKind | None:
    """None while it lasts, and when nobody saw what began its end."""
    if attempt.ended_at is None:
        return None
    told = [one for one in timeline.interruptions.values() if one.attempt == attempt.number and not one.in_place]
    cause = first_cause(max(told, key=lambda one: one.number).faults) if told else None
    return cause.kind if cause is not None else None

"""The step at which all ranks of a task save and go together, agreed upon before any of them reaches it.

A step is proposed a little ahead of the ranks, and every rank says whether it heard of it before its script had gone
beyond. When all did, it is agreed, and whoever has reached it goes; when one did not, a later step is proposed, and
those that wait at the first one train on. So all ranks go after the same step, however slow the word travels.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from strata.cluster.members import Worker
from strata.coordinator.scheduling.progress import status_of
from strata.coordinator.state.pulses import Pulses
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.tasks import TaskCourse

__all__ = ["HEARING_S", "plan_parting"]

HEARING_S = 2.5  # within which every rank has sent a heartbeat and was told, on a busy host too


def plan_parting(
    course: TaskCourse, workers: Sequence[Worker], pulses: Pulses, hearing_s: float = HEARING_S
) -> TaskCourse | None:
    """The course with a step proposed or agreed; None when there is nothing to say now. Nothing is proposed to ranks
    that have made no step yet: they may never count any."""
    statuses = _statuses(workers, pulses)
    stepping = [status for status in statuses if status.current_step > 0]
    if course.stop_agreed or not stepping:
        return None
    furthest = max(status.current_step for status in stepping)
    if course.stop_at < 0:
        return replace(course, stop_at=furthest + _margin(stepping, hearing_s))
    heard = [status for status in statuses if status.HasField("stop_heard") and status.stop_heard == course.stop_at]
    if any(status.stop_passed for status in heard):
        beyond = 2 * (furthest - course.stop_at + 1)  # they went so far while the word was on its way
        return replace(course, stop_at=max(furthest, course.stop_at) + max(beyond, _margin(stepping, hearing_s)))
    return replace(course, stop_agreed=True) if len(heard) == len(statuses) else None


def _margin(stepping: Sequence[pb.WorkerStatus], hearing_s: float) -> int:
    """How many steps the fastest rank makes before all have heard."""
    times = [status.step_time_s for status in stepping if status.step_time_s > 0]
    return max(1, math.ceil(hearing_s / min(times))) if times else 2


def _statuses(workers: Sequence[Worker], pulses: Pulses) -> list[pb.WorkerStatus]:
    return [status for worker in workers if (status := status_of(worker, pulses)) is not None]

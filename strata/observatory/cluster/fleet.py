"""The cluster's workers as one picture: counts, a letter for each, who is slow. Pure, and one pass over all of them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from strata.cluster.members import Worker as Member
from strata.observatory.answers.fleet import Fleet, FleetGroup, FleetPage, SlowRank, Spread
from strata.observatory.answers.workers import WorkerStatus
from strata.observatory.cluster import views
from strata.observatory.cluster.followed import FollowedCluster

__all__ = ["FOLDED", "FleetQuery", "fleet", "fleet_page", "is_folded"]

# Above it a row for each worker, twice a second, is more than a page can show or a connection should carry: about
# 600 bytes each.
FOLDED = 512
_SLOWEST = 10
_SUSPECT = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuery:
    """Which workers are asked for; an empty text asks for nothing. `text` is looked for in id, host, status and task;
    `status` may also be `suspect`."""

    task_id: str | None = None
    worker_id: str = ""
    status: str = ""
    text: str = ""
    rank: int | None = None


def is_folded(cluster: FollowedCluster) -> bool:
    return len(cluster.present()) > FOLDED


def fleet(cluster: FollowedCluster) -> Fleet:
    present = cluster.present()
    groups = [_group(cluster, task, list(members)) for task, members in groupby(present, lambda one: one.task_id)]
    return Fleet(total=len(present), folded=len(present) > FOLDED, groups=groups)


def fleet_page(cluster: FollowedCluster, query: FleetQuery, offset: int, limit: int) -> FleetPage:
    """In the order of the picture."""
    found = [one for one in cluster.present() if _matches(cluster, one, query)]
    shown = views.workers(cluster, found[offset : offset + limit])
    return FleetPage(total=len(found), offset=offset, workers=shown)


def _matches(cluster: FollowedCluster, member: Member, query: FleetQuery) -> bool:
    if query.task_id not in (None, member.task_id) or query.rank not in (None, member.rank):
        return False
    if query.worker_id and query.worker_id != member.worker_id:
        return False
    if not query.status and not query.text:
        return True
    status, suspect = _status(cluster, member)
    word = "suspect" if suspect else status
    if query.status and query.status != word:
        return False
    return query.text.lower() in f"{member.worker_id} {member.hostname} {word} {member.task_id}".lower()


def _status(cluster: FollowedCluster, member: Member) -> tuple[WorkerStatus, bool]:
    """As its row has it, and whether it should have been heard of."""
    status = views.status_of(cluster, member)
    return status, status != "failed" and cluster.vitals_of(member.worker_id).member_state == "suspect"


def _group(cluster: FollowedCluster, task_id: str, members: Sequence[Member]) -> FleetGroup:
    known = [_status(cluster, member) for member in members]
    alive = [member for member, (status, _) in zip(members, known, strict=True) if status != "failed"]
    vitals = [cluster.vitals_of(member.worker_id) for member in alive]
    times = [
        (one.step_time_s, member)
        for one, member in zip(vitals, alive, strict=True)
        if one.step_time_s is not None and 0 < one.step_time_s < math.inf
    ]
    ranks = [member.rank for member in members]
    took = _spread(seconds for seconds, _ in times)
    return FleetGroup(
        task_id=task_id or None,
        counts=dict(Counter(status for status, _ in known)),
        suspect=sum(suspect for _, suspect in known),
        states="".join(_SUSPECT if suspect else status[0] for status, suspect in known),
        ranks=None if ranks == list(range(len(ranks))) else ranks,
        host_sizes=[len(list(same)) for _, same in groupby(members, lambda one: one.agent_id or one.hostname)],
        step=_spread(one.current_step for one in vitals if one.current_step is not None),
        step_time_s=took,
        slowest=[] if took is None or len(times) < 2 else _slowest(times, took.median),
    )


def _slowest(times: list[tuple[float, Member]], median: float) -> list[SlowRank]:
    ordered = sorted(times, key=lambda item: (-item[0], item[1].rank))
    return [
        SlowRank(rank=member.rank, worker_id=member.worker_id, step_time_s=seconds, ratio=seconds / median)
        for seconds, member in ordered[:_SLOWEST]
    ]


def _spread(values: Iterable[float]) -> Spread | None:
    found = np.fromiter(values, np.float64)
    found = found[np.isfinite(found)]
    if len(found) == 0:
        return None
    return Spread(least=float(found.min()), median=float(np.median(found)), most=float(found.max()))

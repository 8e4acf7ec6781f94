"""Who may do what: every gRPC method and every REST route, once. What is not listed here is refused.

The gRPC gate and the REST guard ask `admit`; no other code decides about rights. SECURITY.md's table is generated from
this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from strata.errors import PermissionDenied, StrataError, Unauthenticated
from strata.trust.who import Visitor, Who

__all__ = ["TABLE", "Admission", "Rule", "admit"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`own` names the fields of the request that must be the rank's own. `costs` marks a GET that starts work: a page
    of another site must not be able to ask for it, not even by a link."""

    may: frozenset[Who]
    own: tuple[str, ...] = ()
    costs: bool = False


_ANYONE = Rule(frozenset(Who))
_OWNERS = Rule(frozenset({Who.OWNER}))
_COSTLY = Rule(frozenset({Who.OWNER}), costs=True)
_READERS = Rule(frozenset({Who.OWNER, Who.RANK}))


def _own(*fields: str) -> Rule:
    return Rule(frozenset({Who.OWNER, Who.RANK}), fields)


def _methods(service: str, rules: Mapping[str, Rule]) -> dict[str, Rule]:
    return {f"/{service}/{method}": rule for method, rule in rules.items()}


TABLE: Mapping[str, Rule] = {
    **_methods(
        "coordinator.Coordinator",
        {
            "RegisterWorker": _own("worker_id", "task_id"),
            "Heartbeat": _own("worker_id"),
            "DeregisterWorker": _own("worker_id"),
            "StreamHeartbeats": _own("worker_id"),
            "RegisterDataset": _READERS,
            "GetDataShard": _own("worker_id"),
            "GetShardAssignments": _own("worker_id"),
            "WaitBarrier": _own("worker_id"),
            "NotifyCheckpoint": _own("worker_id"),
            "GetLatestCheckpoint": _own("worker_id", "job_id"),
            "BeginCheckpoint": _own("worker_id"),
            "VoteCheckpoint": _own("worker_id"),
            "AwaitCheckpoint": _own("worker_id"),
            "CommitCheckpoint": _own("worker_id"),
            "AbortCheckpoint": _own("worker_id"),
            "ClaimShard": _own("worker_id"),
            "CommitShards": _own("worker_id"),
            "RestoreQueue": _own("worker_id"),
            "AnnounceReading": _own("worker_id"),
        },
    ),
    **_methods(
        "strata.control.Control",
        {
            "WatchState": _OWNERS,
            "GetTask": _own("task_id"),
            "ListTasks": _OWNERS,
            "GetDataset": _READERS,
            "ListDatasets": _OWNERS,
            "ListWorkers": _OWNERS,
            "ListAgents": _OWNERS,
            "ListCheckpoints": _OWNERS,
            "GetShardTable": _OWNERS,
            "SubmitTask": _OWNERS,
            "StopTask": _OWNERS,
            "ResumeTask": _OWNERS,
            "DrainAgent": _OWNERS,
            "ReportCheck": _OWNERS,
        },
    ),
    **_methods("strata.agents.Agents", {"Attach": _OWNERS}),
    **_methods("strata.ranks.Ranks", {"Tie": _own("worker_id")}),
    **_methods(
        "strata.telemetry.Telemetry", {"Report": _own("run_id", "task_id"), "ReportOnce": _own("run_id", "task_id")}
    ),
    **_methods("grpc.health.v1.Health", {"Check": _ANYONE, "List": _ANYONE, "Watch": _ANYONE}),
    **_methods("grpc.reflection.v1alpha.ServerReflection", {"ServerReflectionInfo": _OWNERS}),
    "GET /health": _ANYONE,
    "GET /api/health": _ANYONE,
    "GET /{path:path}": _ANYONE,  # the page itself: files of the package
    "POST /api/session": _ANYONE,  # gives nothing without the token
    "DELETE /api/session": _ANYONE,
    "GET /docs": _OWNERS,
    "GET /openapi.json": _OWNERS,
    "GET /api/status": _OWNERS,
    "GET /metrics": _OWNERS,
    "GET /stream": _COSTLY,
    "GET /api/stream": _COSTLY,
    "GET /runs": _OWNERS,
    "GET /api/runs": _OWNERS,
    "PATCH /api/runs": _OWNERS,
    "GET /api/runs/table": _OWNERS,
    "GET /api/runs/{run_id}/summary": _OWNERS,
    "GET /api/runs/{run_id}/texts": _OWNERS,
    "PATCH /api/runs/{run_id}": _OWNERS,
    "DELETE /api/runs/{run_id}": _OWNERS,
    "POST /api/runs/{run_id}/points": _OWNERS,
    "GET /api/runs/{run_id}/export": _COSTLY,
    "GET /metrics/{run_id}": _OWNERS,
    "GET /api/metrics/{run_id}": _OWNERS,
    "GET /api/series": _OWNERS,
    "GET /api/outline": _OWNERS,
    "GET /api/logs": _OWNERS,
    "GET /api/tasks/{task_id}/logs": _OWNERS,
    "GET /api/workers": _OWNERS,
    "GET /api/checkpoints": _OWNERS,
    "GET /checkpoints/{run_id}": _OWNERS,
    "GET /api/checkpoints/{run_id}": _OWNERS,
    "POST /api/checkpoints/{checkpoint_id}/pin": _OWNERS,
    "POST /api/checkpoints/{checkpoint_id}/unpin": _OWNERS,
    "GET /api/barriers": _OWNERS,
    "GET /api/metrics": _OWNERS,
    "GET /api/alerts": _OWNERS,
    "GET /api/dashboard": _OWNERS,
    "GET /api/tasks": _OWNERS,
    "POST /api/tasks": _OWNERS,
    "GET /api/tasks/{task_id}": _OWNERS,
    "GET /api/tasks/{task_id}/course": _OWNERS,
    "POST /api/tasks/{task_id}/stop": _OWNERS,
    "POST /api/tasks/{task_id}/resume": _OWNERS,
    "GET /api/hosts": _OWNERS,
    "POST /api/hosts/{host}/drain": _OWNERS,
    "POST /api/hosts/{host}/undrain": _OWNERS,
    "GET /api/datasets": _OWNERS,
    "POST /api/datasets": _OWNERS,
    "GET /api/datasets/{dataset_id}/shards": _OWNERS,
    "GET /api/datasets/{dataset_id}/preview": _COSTLY,
}


@dataclass(frozen=True, slots=True)
class Admission:
    """A visitor that was let in, and by which rule."""

    visitor: Visitor
    rule: Rule

    def check_own(self, request: object) -> None:
        """Refuses a rank that names another's worker or task in the fields that must be its own."""
        if self.visitor.who is not Who.RANK:
            return
        for field in self.rule.own:
            value = str(getattr(request, field))
            owns = self.visitor.owns_worker if field == "worker_id" else self.visitor.owns_task
            if value and not owns(value):
                raise PermissionDenied(f"{field} {value[:80]!r} is not of task {self.visitor.task_id}")


def admit(command: str, visitor: Visitor) -> Admission | StrataError:
    """The visitor with its rule, or the error to answer with. The error tells a stranger nothing about what exists."""
    rule = TABLE.get(command)
    if rule is not None and visitor.who in rule.may:
        return Admission(visitor, rule)
    if visitor.who is Who.STRANGER:
        return Unauthenticated("the cluster's token is needed here: this caller is not known to be Strata's owner")
    if rule is None:
        return PermissionDenied(f"{command[:80]} is in no row of the table of rights")
    return PermissionDenied(f"{command} is not for a {visitor.who}")

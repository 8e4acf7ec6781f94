"""Who may do what: every gRPC method and every REST route, once. What is not listed here is refused.

The gRPC gate and the REST guard ask `admit`; no other code decides about rights. SECURITY.md's table is generated from
this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from strata.errors import PermissionDenied, StrataError, Unauthenticated
from strata.trust.who import Visitor, Who

__all__ = ["TABLE", "Admission", "Rule", "acts_of", "admit"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`own` names the fields of the request that must be the rank's own. `costs` marks a GET that starts work: a page
    of another site must not be able to ask for it, not even by a link."""

    may: frozenset[Who]
    own: tuple[str, ...] = ()
    costs: bool = False


_ALL = frozenset({Who.OWNER, Who.OPERATOR})
_ANYONE = Rule(frozenset(Who))
_KNOWN = Rule(frozenset(Who) - {Who.STRANGER, Who.RANK})
_OWNER = Rule(frozenset({Who.OWNER}))
_OPERATORS = Rule(_ALL)
_COSTLY = Rule(_ALL, costs=True)
_VIEWERS = Rule(_ALL | {Who.VIEWER})
_COSTLY_VIEWS = Rule(_ALL | {Who.VIEWER}, costs=True)
_READERS = Rule(_ALL | {Who.VIEWER, Who.RANK})
_AGENTS = Rule(_ALL | {Who.AGENT})


_FOR_OPERATORS = "`strata token create --role operator` on the first host makes a token that may."
_FOR_THE_OWNER = "Only the owner may: ask on the first host, as the user who started Strata, or with its STRATA_TOKEN."
_A = {who: "an" if who[0] in "aeiou" else "a" for who in Who}


def _own(*fields: str, also: Who | None = None) -> Rule:
    """Operators' and the rank's own, and all of it for one more."""
    return Rule(_ALL | {Who.RANK} | ({also} if also else set()), fields)


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
            "RegisterDataset": _own(),
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
            "WatchState": _OPERATORS,
            "GetTask": _own("task_id", also=Who.VIEWER),
            "ListTasks": _VIEWERS,
            "GetDataset": _READERS,
            "ListDatasets": _VIEWERS,
            "ListWorkers": _VIEWERS,
            "ListAgents": _VIEWERS,
            "ListCheckpoints": _VIEWERS,
            "GetShardTable": _VIEWERS,
            "PutCode": _OPERATORS,
            "GetCode": _AGENTS,
            "SubmitTask": _OPERATORS,
            "StopTask": _OPERATORS,
            "ResumeTask": _OPERATORS,
            "ForkTask": _OPERATORS,
            "DrainAgent": _OPERATORS,
            "ReportCheck": _OPERATORS,
        },
    ),
    **_methods("strata.agents.Agents", {"Attach": _AGENTS}),
    **_methods("strata.ranks.Ranks", {"Tie": _own("worker_id")}),
    **_methods(
        "strata.telemetry.Telemetry",
        {
            "Report": _own("run_id", "task_id", also=Who.AGENT),
            "ReportOnce": _own("run_id", "task_id", also=Who.AGENT),
        },
    ),
    **_methods(
        "strata.trust.Trust",
        {
            "GetAuthority": _ANYONE,  # whoever joins must know whom to believe before it shows anything
            "Join": _KNOWN,
            "CreateToken": _OWNER,
            "ListTokens": _OWNER,
            "RevokeToken": _OWNER,
        },
    ),
    **_methods("grpc.health.v1.Health", {"Check": _ANYONE, "List": _ANYONE, "Watch": _ANYONE}),
    **_methods("grpc.reflection.v1alpha.ServerReflection", {"ServerReflectionInfo": _OPERATORS}),
    "GET /health": _ANYONE,
    "GET /api/health": _ANYONE,
    "GET /{path:path}": _ANYONE,  # the page itself: files of the package
    "GET /api/session": _ANYONE,  # what the caller may: nothing, for a stranger
    "POST /api/session": _ANYONE,  # gives nothing without the token
    "DELETE /api/session": _ANYONE,
    "GET /docs": _VIEWERS,
    "GET /openapi.json": _VIEWERS,
    "GET /api/status": _VIEWERS,
    "GET /metrics": _VIEWERS,
    "GET /stream": _COSTLY_VIEWS,
    "GET /api/stream": _COSTLY_VIEWS,
    "GET /runs": _VIEWERS,
    "GET /api/runs": _VIEWERS,
    "PATCH /api/runs": _OPERATORS,
    "GET /api/runs/table": _VIEWERS,
    "GET /api/runs/{run_id}/info": _VIEWERS,
    "GET /api/runs/{run_id}/summary": _VIEWERS,
    "GET /api/runs/{run_id}/texts": _VIEWERS,
    "GET /api/runs/{run_id}/media": _VIEWERS,
    "GET /api/runs/{run_id}/media/steps": _VIEWERS,
    "GET /api/runs/{run_id}/media/entries": _VIEWERS,
    "GET /api/runs/{run_id}/files/{name}": _VIEWERS,
    "PATCH /api/runs/{run_id}": _OPERATORS,
    "DELETE /api/runs/{run_id}": _OPERATORS,
    "POST /api/runs/{run_id}/points": _OPERATORS,
    "GET /api/runs/{run_id}/export": _COSTLY_VIEWS,
    "GET /metrics/{run_id}": _VIEWERS,
    "GET /api/metrics/{run_id}": _VIEWERS,
    "GET /api/series": _VIEWERS,
    "GET /api/series/names": _VIEWERS,
    "GET /api/outline": _VIEWERS,
    "POST /api/sql": _VIEWERS,  # reads what the routes around it give, and nothing else
    "GET /api/dashboards": _VIEWERS,
    "GET /api/dashboards/{dashboard_id}": _VIEWERS,
    "PUT /api/dashboards/{dashboard_id}": _OPERATORS,
    "DELETE /api/dashboards/{dashboard_id}": _OPERATORS,
    "GET /api/logs": _VIEWERS,
    "GET /api/tasks/{task_id}/logs": _VIEWERS,
    "GET /api/workers": _VIEWERS,
    "GET /api/fleet": _VIEWERS,
    "GET /api/fleet/workers": _VIEWERS,
    "GET /api/runs/{run_id}/heat": _VIEWERS,
    "GET /api/checkpoints": _VIEWERS,
    "GET /checkpoints/{run_id}": _VIEWERS,
    "GET /api/checkpoints/{run_id}": _VIEWERS,
    "POST /api/checkpoints/{checkpoint_id}/pin": _OPERATORS,
    "POST /api/checkpoints/{checkpoint_id}/unpin": _OPERATORS,
    "GET /api/barriers": _VIEWERS,
    "GET /api/metrics": _VIEWERS,
    "GET /api/alerts": _VIEWERS,
    "GET /api/alerts/rules": _VIEWERS,
    "PUT /api/alerts/rules/{name}": _OPERATORS,
    "DELETE /api/alerts/rules/{name}": _OPERATORS,
    "PUT /api/alerts/targets/{name}": _OPERATORS,
    "DELETE /api/alerts/targets/{name}": _OPERATORS,
    "POST /api/alerts/targets/{name}/test": _OPERATORS,
    "GET /api/dashboard": _VIEWERS,
    "GET /api/tasks": _VIEWERS,
    "POST /api/tasks": _OPERATORS,
    "GET /api/tasks/{task_id}": _VIEWERS,
    "GET /api/tasks/{task_id}/course": _VIEWERS,
    "GET /api/tasks/{task_id}/why": _VIEWERS,
    "POST /api/tasks/{task_id}/stop": _OPERATORS,
    "POST /api/tasks/{task_id}/resume": _OPERATORS,
    "POST /api/tasks/{task_id}/fork": _OPERATORS,
    "GET /api/hosts": _VIEWERS,
    "POST /api/hosts/{host}/drain": _OPERATORS,
    "POST /api/hosts/{host}/undrain": _OPERATORS,
    "GET /api/datasets": _VIEWERS,
    "POST /api/datasets": _OPERATORS,
    "GET /api/datasets/{dataset_id}/shards": _VIEWERS,
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


def acts_of(who: Who) -> list[str]:
    """The rows of REST that are for this caller and not for viewers: what a page offers only to those who may."""
    return [row for row, rule in TABLE.items() if " /" in row and who in rule.may and Who.VIEWER not in rule.may]


def admit(command: str, visitor: Visitor) -> Admission | StrataError:
    """The visitor with its rule, or the error to answer with. The error tells a stranger nothing about what exists."""
    rule = TABLE.get(command)
    if rule is not None and visitor.who in rule.may:
        return Admission(visitor, rule)
    if visitor.who is Who.STRANGER:
        if visitor.fault:
            return Unauthenticated(visitor.fault, hint="Ask for another one: `strata token create` on the head.")
        return Unauthenticated("the cluster's token is needed here: this caller is not known to be Strata's owner")
    if rule is None:
        return PermissionDenied(f"{command[:80]} is in no row of the table of rights")
    hint = _FOR_OPERATORS if Who.OPERATOR in rule.may else _FOR_THE_OWNER
    return PermissionDenied(f"{command} is not for {_A[visitor.who]} {visitor.who}", hint=hint)

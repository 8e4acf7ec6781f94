"""What REST and SSE send of the cluster: each collection encoded once per change, never per request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from strata.clock import Clock
from strata.cluster.events import EVENT_KINDS, Event, decode_event
from strata.observatory.answers.cluster import COLLECTIONS, ClusterState, Collection
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster import views
from strata.observatory.cluster.fleet import fleet, is_folded
from strata.observatory.cluster.followed import FollowedCluster
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.records.encoding import encode, encoded
from strata.observatory.records.times import to_ms, to_s
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.control_pb2 import BarrierVitals, TaskSpares

__all__ = ["PublishedCluster"]

# A feed that is this far behind is broken, and the page says so.
_SHOWN_WITHIN_S = 5.0

_VIEWS: dict[Collection, Callable[[FollowedCluster], Any]] = {
    "workers": views.workers,
    "fleet": fleet,
    "tasks": views.tasks,
    "datasets": views.datasets,
    "checkpoints": views.checkpoints,
    "barriers": views.barriers,
    "metrics": views.metrics,
}


class PublishedCluster:
    """The feed writes, everybody else reads. `status` is GET /api/status without the coordinator's part. A record that
    cannot be read, followed or shown goes to `aside` and hides no other."""

    def __init__(self, stream: Broadcaster, clock: Clock, status: Callable[[], Status], aside: SetAside) -> None:
        self.followed = FollowedCluster()
        self.aside = aside
        self.connected = False
        self.problem: str | None = "connecting"
        self.listeners: list[Callable[[Event, int], object]] = []
        self._stream = stream
        self._clock = clock
        self._status = status
        self._bodies: dict[Collection, bytes] = {}
        self._stale: set[str] = set(COLLECTIONS)
        self._untold: set[str] = set(COLLECTIONS)  # changed since the stream told of it
        self._sent: dict[Collection, bytes] = {}
        self._told: object = None
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []

    def load(self, seq: int, dumped: Mapping[str, Any]) -> None:
        self.followed.load(seq, dumped, lambda place: self.aside.guard("cluster records", place))
        self._set_connected()
        self._wake()

    def apply(self, seq: int, kind: str, body: bytes) -> None:
        """An event that happened just now; those of a replay before a snapshot never come through here. A kind that
        this release does not know changes nothing."""
        if seq <= self.followed.seq:
            return
        self.followed.seq = seq
        name = f"{kind} (event {seq})"
        if kind in EVENT_KINDS:
            with self.aside.guard("cluster events", name):
                self._tell(decode_event(kind, body), name)
        self._wake()

    async def shown(self, seq: int) -> None:
        """Returns when the records hold the coordinator's event `seq`, or when the feed is too far behind to wait."""
        if seq <= self.followed.seq:
            return
        reached = asyncio.get_running_loop().create_future()
        self._awaited.append((seq, reached))
        await asyncio.wait([reached], timeout=_SHOWN_WITHIN_S)
        reached.cancel()

    def _wake(self) -> None:
        """Those who waited for an event that has come, and those who gave up."""
        if self._awaited:
            for seq, reached in self._awaited:
                if seq <= self.followed.seq and not reached.done():
                    reached.set_result(None)
            self._awaited = [item for item in self._awaited if not item[1].done()]

    def _tell(self, event: Event, name: str) -> None:
        """Everybody who listens, who may look at what was before, then the records. One who fails hides it from no
        other."""
        for listen in self.listeners:
            with self.aside.guard("cluster events", name):
                listen(event, self.followed.seq)
        with self.aside.guard("cluster events", name):
            self.followed.apply(event)

    def set_vitals(
        self,
        workers: dict[str, WorkerVitals],
        waiting: list[BarrierVitals],
        figures: dict[str, Any],
        spares: Sequence[TaskSpares] = (),
    ) -> None:
        self.followed.set_vitals(workers, waiting, figures, spares)
        self._set_connected()

    def set_disconnected(self, problem: str) -> None:
        """The last state stays, so that people can still see it; the status says that it is old."""
        if self.connected or self.problem != problem:
            self.connected, self.problem = False, problem
            self.followed.dirty.add("coordinator")

    def _set_connected(self) -> None:
        if not self.connected:
            self.connected, self.problem = True, None
            self.followed.dirty.add("coordinator")

    def body(self, name: Collection) -> bytes:
        """The JSON of one collection. The coordinator's tells the time, so it is never an old one."""
        self._collect()
        if name == "coordinator" or name in self._stale or name not in self._bodies:
            self._bodies[name] = encode(self._view(name))
            self._stale.discard(name)
        return self._bodies[name]

    def task_state(self, task_id: str) -> tuple[str, str] | None:
        """A task's status and the reason for it; None for one that the coordinator does not know."""
        task = self.followed.records.tasks.get(task_id)
        return None if task is None else (task.status.value, task.reason)

    def origin_of(self, task_id: str) -> tuple[str, int] | None:
        """The task that this one was forked from, and the step; None for one that was not."""
        task = self.followed.records.tasks.get(task_id)
        fork = None if task is None else task.spec.fork
        return None if fork is None else (fork.task_id, fork.step)

    def status(self) -> Status:
        """GET /api/status: uptime and start are the coordinator's, null while nothing is known of it."""
        records = self.followed.records
        known = bool(records.cluster_id)
        started = records.started_at if known else None
        now = self._clock.wall()
        return replace(
            self._status(),
            connected=self.connected,
            uptime=max(0, round(now - started)) if started is not None and self.connected else None,
            generation=max(group.generation for group in records.groups.values()) if known else None,
            term=records.term if known else None,
            cluster_id=records.cluster_id or None,
            started_at=to_s(started),
            started_at_ms=to_ms(started),
            problem=self.problem,
        )

    def publish(self) -> None:
        """On each tick: collections that changed, each whole, in one event; of a folded fleet without the rows."""
        status = self._status()
        news = (status.metric_store_problem, status.set_aside)
        if news != self._told:  # of the observatory's own making: no event of the coordinator announces it
            self._told = news
            self.followed.dirty.add("coordinator")
        self._collect()
        changed, self._untold = self._untold, set()
        state = ClusterState()
        for name in COLLECTIONS:
            if name in changed:
                body = self._streamed(name)
                if body != self._sent.get(name) or name == "coordinator":
                    state[name] = encoded(body)
                self._sent[name] = body
        if state:
            self._stream.publish("state", state, topic="state")

    def sparse(self) -> dict[Collection, bytes]:
        """All collections as the stream tells them."""
        self._collect()
        return {name: self._streamed(name) for name in COLLECTIONS}

    def _streamed(self, name: Collection) -> bytes:
        if name in ("workers", "tasks") and is_folded(self.followed):
            return b"[]" if name == "workers" else encode(views.tasks(self.followed, named=False))
        return self.body(name)

    def _collect(self) -> None:
        changed = self.followed.dirty | ({"fleet"} if "workers" in self.followed.dirty else set())
        self._stale |= changed
        self._untold |= changed
        self.followed.dirty.clear()

    def _view(self, name: Collection) -> Any:
        if name == "coordinator":
            return self.status()
        view = _VIEWS[name](self.followed)
        while self.followed.unshown:
            self.aside.note("cluster lists", *self.followed.unshown.popitem())
        return view

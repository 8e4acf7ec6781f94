"""The pure state of a cluster under a hand-turned clock, with short names for what tests ask of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from strata.clock import ManualClock
from strata.cluster.events import BarrierBroke, BarrierReleased, Event, decode_event, encode_event
from strata.cluster.members import Worker
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import SaveAttempt, Vote
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.now import Now, read_clock
from strata.coordinator.state.outcomes import Outcome
from strata.coordinator.state.replies import JoinReply
from strata.errors import StrataError
from strata.types.barriers import BarrierArrival
from strata.types.datasets import DatasetSpec
from strata.types.tasks import TaskSpec
from strata.types.workers import MemberState, WorkerSpec

__all__ = ["PureCluster", "caller", "spec"]


def caller(worker_id: str, incarnation: str = "", generation: int = 0) -> Caller:
    return Caller(worker_id=worker_id, incarnation=incarnation, generation=generation)


def spec(worker_id: str, **values: Any) -> WorkerSpec:
    return WorkerSpec(worker_id=worker_id, **values)


class PureCluster:
    """`events` is everything that happened since the start, in order."""

    def __init__(self, config: StateConfig | None = None) -> None:
        self.config = config or StateConfig()
        self.clock = ManualClock()
        self.state = ClusterState(self.config)
        self.events: list[Event] = []

    # --- asking

    def now(self) -> Now:
        return read_clock(self.clock)

    def ask(self, command: c.Command[c.Reply]) -> c.Reply:
        applied = self.state.apply(command, self.now())
        self.events.extend(applied.events)
        return applied.reply

    def join(self, worker_id: str, **values: Any) -> JoinReply:
        return self.ask(c.RegisterWorker(spec=spec(worker_id, **values)))

    def join_all(self, *worker_ids: str, **values: Any) -> None:
        for worker_id in worker_ids:
            self.join(worker_id, **values)

    def leave(self, worker_id: str) -> None:
        self.ask(c.DeregisterWorker(caller=caller(worker_id)))

    def lose(self, *worker_ids: str, reason: str = "killed by signal 9") -> None:
        self.ask(c.LoseWorkers(gone=dict.fromkeys(worker_ids, reason)))

    def beat(self, *worker_ids: str) -> None:
        for worker_id in worker_ids:
            self.state.membership.pulses.beat(worker_id, None, self.now())

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.ask(c.Tick())

    def arrive(self, worker_id: str, barrier_id: str = "b", **values: Any) -> Outcome | None:
        arrival = BarrierArrival(worker_id=worker_id, barrier_id=barrier_id, **values)
        reply = self.ask(c.Arrive(arrival=arrival))
        return reply.outcome

    def dataset(self, dataset_id: str = "d", total_samples: int = 1000, shard_size: int = 10) -> int:
        shape = DatasetSpec(dataset_id=dataset_id, total_samples=total_samples, shard_size=shard_size)
        return self.ask(c.RegisterDataset(spec=shape))

    def shards(self, worker_id: str, dataset_id: str = "d", epoch: int = 0) -> list[int]:
        reply = self.ask(c.GetShards(caller=caller(worker_id), dataset_id=dataset_id, epoch=epoch))
        return [shard.shard_id for shard in reply.assignments]

    def begin(self, worker_id: str, step: int = 10, **values: Any) -> SaveAttempt:
        asked = {"epoch": 0, "storage_path": "s3://b/step", "deadline_s": 60.0, "caller": caller(worker_id), **values}
        return self.ask(c.BeginCheckpoint(step=step, **asked))

    def vote(self, worker_id: str, attempt: str, **values: Any) -> SaveAttempt:
        vote = Vote(**{"manifest_key": "k", "manifest_hash": "h", "size_bytes": 5, "duration_s": 2.0, **values})
        rank = self.worker(worker_id).rank
        return self.ask(c.VoteCheckpoint(caller=caller(worker_id), attempt=attempt, rank=rank, vote=vote))

    def commit(self, worker_id: str, attempt: str) -> SaveAttempt:
        return self.ask(c.CommitCheckpoint(caller=caller(worker_id), attempt=attempt))

    def submit(self, task_id: str, *, worker_count: int = 2, request_id: str = "", dataset_id: str = "") -> Any:
        shape = TaskSpec(name="job", worker_count=worker_count, entrypoint=("python", "t.py"), dataset_id=dataset_id)
        return self.ask(c.SubmitTask(task_id=task_id, spec=shape, request_id=request_id))

    # --- looking

    def worker(self, worker_id: str) -> Worker:
        return self.state.membership.workers[worker_id]

    def standing(self, worker_id: str) -> MemberState:
        return self.state.membership.pulses.standing(worker_id, self.worker(worker_id).state)

    def world_size(self, task_id: str = "") -> int:
        return self.state.membership.world_size(task_id)

    def generation(self, task_id: str = "") -> int:
        return self.state.membership.groups[task_id].generation

    def ranks(self, task_id: str = "") -> dict[str, int]:
        return {worker.worker_id: worker.rank for worker in self.state.membership.alive_in(task_id)}

    def happened(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]

    def image(self) -> str:
        """Everything that a refusal must not touch: what is durable, and who waits where."""
        waiting = {
            str(key): (barrier.round, barrier.expected, sorted(barrier.members or ()), list(barrier.arrivals))
            for key, barrier in self.state.barriers.open.items()
        }
        return json.dumps([self.state.dump(), waiting], sort_keys=True)

    @contextmanager
    def refuses(self, error: type[StrataError], match: str | None = None) -> Iterator[None]:
        """What happens inside is refused with a sentence and leaves no trace."""
        before, num_events = self.image(), len(self.events)
        with pytest.raises(error, match=match) as caught:
            yield
        assert type(caught.value) is error
        assert len(str(caught.value)) > 10, "a refusal is a sentence"
        assert self.image() == before
        assert len(self.events) == num_events

    # --- coming back

    def replayed(self) -> ClusterState:
        """A fresh state that was told every event, as after a crash."""
        state = ClusterState(self.config)
        for event in self.events:
            state.evolve(decode_event(type(event).__name__, encode_event(event)), self.now())
        return state

    def reloaded(self) -> ClusterState:
        """A fresh state from a snapshot that has been through JSON, and the ends of barriers that the journal keeps."""
        state = ClusterState(self.config)
        state.load(json.loads(json.dumps(self.state.dump())), self.now())
        for event in self.events:
            if isinstance(event, BarrierReleased | BarrierBroke):
                state.evolve(event, self.now())
        return state

    def restart(self) -> None:
        """As a coordinator process does it: what is volatile is gone, everybody gets a fresh term."""
        self.state = self.replayed()
        self.state.renew_leases(self.now())

"""The ranks' streams: heartbeats and arrivals at barriers come up; releases, losses of members and the step to stop at
go down as soon as they are durable. A tie is the same whether the rank opened it here or its agent carries it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from strata.cluster import events as e
from strata.cluster.members import Group, Worker
from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.beats import take_beat
from strata.coordinator.rpc.release_queue import ReleaseQueue
from strata.coordinator.rpc.releases import ReleaseWriter, to_result
from strata.coordinator.state import commands as c
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.outcomes import Outcome
from strata.errors import Fenced, InvalidArgument, PermissionDenied, StrataError
from strata.protocol import convert
from strata.protocol.fields import to_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskStatus

__all__ = ["RankTie", "Ties"]

_NAMED = 100  # losses that members are told by name in one message
_SMALL = 100  # members to whom every loss is told by itself
_PAUSE_S = 10e-6  # for each larger group's member between two such messages: to send one takes 3 µs
_ACKS = 256  # answers to beats that are kept for a task

Admit = Callable[[rk.RankHello, Worker], None]
Send = Callable[[bytes], None]
End = Callable[[StrataError], None]


class Host(Protocol):
    """Carries the ties of several ranks."""

    def tell(self, numbers: Sequence[int], alike: bytes) -> None:
        """Sends a serialised RankNews to those of its ranks whose ties have these numbers."""


class Ties:
    """All ties, the newest of each worker."""

    def __init__(self, coordinator: Coordinator, proofs: Proofs) -> None:
        self.coordinator = coordinator
        self.state = coordinator.state
        self.releases = ReleaseWriter(self._position)
        self.releasing = ReleaseQueue()
        self._proofs = proofs
        self._ties: dict[str, dict[str, RankTie]] = {}  # group → worker → tie
        self._held: dict[str, list[tuple[str, str]]] = {}  # by group: losses, with reasons, to be told a little later
        self._worlds: dict[str, tuple[Task, rk.World | None]] = {}  # by task, as of this record
        self._acks: dict[str, tuple[Task | None, Group, dict[int, bytes]]] = {}  # by task, as of these records
        self._together: dict[Waiter, Callable[[], Iterable[RankTie]]] = {}  # waits that no tie knows of yet
        coordinator.listen(self._on_event)

    def carried(self, number: int, agent_id: str, send: Send, end: End) -> "RankTie":
        """A tie that comes over an agent's stream: an agent speaks for the ranks of its own host, and one that was
        started for a task must have shown it the secret of its attempt."""

        def admit(hello: rk.RankHello, worker: Worker) -> None:
            if worker.agent_id != agent_id:
                raise PermissionDenied(f"worker {worker.worker_id} is not of agent {agent_id}")
            if worker.is_started_rank:
                self._check_proof(hello)

        return RankTie(self, admit, send, end, number)

    def _check_proof(self, hello: rk.RankHello) -> None:
        visitor = self._proofs.read_secret(hello.proof)
        if visitor is None or not visitor.owns_worker(hello.worker_id):
            raise PermissionDenied(f"the proof of worker {hello.worker_id} is not that of its attempt")
        self.state.tasks.check_attempt(visitor.task_id, visitor.attempt)

    def _position(self, event: e.BarrierReleased) -> tuple[int, int]:
        record = self.coordinator.record_of(event)
        return (self.state.term, record) if record else (0, 0)

    # --- the newest tie of each worker

    def add(self, tie: "RankTie", task_id: str) -> None:
        self._ties.setdefault(task_id, {})[tie.worker_id] = tie

    def remove(self, tie: "RankTie", task_id: str) -> bool:
        """False when a newer one has taken its place."""
        group = self._ties.get(task_id, {})
        if group.get(tie.worker_id) is not tie:
            return False
        del group[tie.worker_id]
        if not group:
            del self._ties[task_id]
            self._worlds.pop(task_id, None)
            self._acks.pop(task_id, None)
        return True

    # --- ranks that wait together

    def wait_together(self, waiter: Waiter, ties: "Callable[[], Iterable[RankTie]]") -> None:
        """These wait. Most often nobody asks before all of them are told, so it is noted with each of thousands when
        somebody does."""
        self._together[waiter] = ties

    def told_together(self, waiter: Waiter) -> bool:
        """All of them were told. False if it was noted with each."""
        return self._together.pop(waiter, None) is not None

    def note_waits(self) -> None:
        """From now on each tie knows what it waits at."""
        together, self._together = self._together, {}
        for waiter, ties in together.items():
            for tie in ties():
                tie.waiters[waiter.request_id] = waiter

    # --- what groups are told

    def _on_event(self, event: e.Event) -> None:
        if isinstance(event, e.MembersLost):
            self.releasing.finish()
            self._on_lost(event)
        elif isinstance(event, e.TaskChanged) and event.task_id in self._ties:
            self.releasing.finish()
            news = rk.RankNews()
            self.add_stop(news, event.task_id)
            if news.HasField("stop_at"):
                self._tell(event.task_id, news)
            world = self.world(event.task_id)
            if world is not None:
                self._tell(event.task_id, rk.RankNews(world=world))

    def _on_lost(self, event: e.MembersLost) -> None:
        group = self._ties.get(event.task_id, {})
        named = list(zip(event.worker_ids, event.reasons, strict=True))
        for worker_id, reason in named:
            tie = group.get(worker_id)
            if tie is not None and not self._has_joined(tie):
                tie.fence(Fenced(f"fenced: worker {worker_id} is out: {reason}"))
        task = self.state.tasks.tasks.get(event.task_id)
        if task is not None and (task.status.final or task.status is TaskStatus.RECOVERING):
            return  # its agents end all the others, too
        held = self._held.get(event.task_id)
        if held is None:
            self._tell_lost(event.task_id, named)
        else:
            held += named

    def _has_joined(self, tie: "RankTie") -> bool:
        """Whether its rank is a member: it has joined since the loss that is told only now, when it is durable."""
        worker = self.state.membership.workers.get(tie.worker_id)
        return worker is not None and worker.alive and worker.incarnation == tie.caller.incarnation

    def _tell_lost(self, task_id: str, named: list[tuple[str, str]]) -> None:
        """A first loss is told at once. While a large group hears of it, further ones gather, to be told together: if
        thousands are lost one by one, and each is told to thousands, nothing else would be done."""
        lost = [rk.Loss(worker_id=worker_id, reason=reason) for worker_id, reason in named[:_NAMED]]
        self._tell(task_id, rk.RankNews(lost=lost))
        size = len(self._ties.get(task_id, ()))
        if size > _SMALL:
            self._held[task_id] = []
            asyncio.get_running_loop().call_later(size * _PAUSE_S, self._tell_held, task_id)

    def _tell_held(self, task_id: str) -> None:
        named = self._held.pop(task_id)
        if named:
            self._tell_lost(task_id, named)

    def _tell(self, task_id: str, news: rk.RankNews) -> None:
        self.date(news, task_id)
        payload = news.SerializeToString()
        hosts: dict[Host, list[int]] = {}
        for tie in self._ties.get(task_id, {}).values():
            if tie.host is None:
                tie.send(payload)
            else:
                hosts.setdefault(tie.host, []).append(tie.number)
        for host, numbers in hosts.items():
            host.tell(numbers, payload)

    def world(self, task_id: str) -> rk.World | None:
        """Who trains together now, for a running task in which a rank was replaced: the others know it from their
        start."""
        task = self.state.tasks.tasks.get(task_id)
        if task is None or task.status is not TaskStatus.RUNNING:
            return None
        known = self._worlds.get(task_id)
        if known is None or known[0] is not task:  # each rank asks, when it says its hello
            number, size = task.course.world, len(task.course.placement)
            made = to_message(rk.World, task.course, number=number, size=size) if number else None
            known = self._worlds[task_id] = (task, made)
        return known[1]

    def ack(self, task_id: str, sequence: int) -> bytes:
        """The answer to a beat. Thousands of ranks of a task count theirs alike, so it is written once for all."""
        task, group = self.state.tasks.tasks.get(task_id), self.state.membership.groups[task_id]
        known = self._acks.get(task_id)
        if known is None or known[0] is not task or known[1] is not group or len(known[2]) > _ACKS:
            known = self._acks[task_id] = (task, group, {})
        payload = known[2].get(sequence)
        if payload is None:
            news = rk.RankNews(heard=sequence)
            self.add_stop(news, task_id)
            self.date(news, task_id)
            payload = known[2][sequence] = news.SerializeToString()
        return payload

    def add_stop(self, news: rk.RankNews, task_id: str) -> None:
        """At which step the group leaves, when it does."""
        stop_at = self.state.tasks.stop_step(task_id)
        if stop_at is not None:
            news.stop_at = stop_at
            news.stop_agreed = self.state.tasks.tasks[task_id].course.stop_agreed

    def date(self, news: rk.RankNews, task_id: str) -> None:
        news.generation = self.state.membership.groups[task_id].generation
        news.term = self.state.term


class RankTie:
    """One rank's stream. `admit` refuses a hello, `send` takes a serialised RankNews, `end` ends the stream. `group` is
    the rank's as it was when the rank was last let in: as long as that is how it is, nobody came or went. `waiters` are
    what it waits at, by request, after `Ties.note_waits`. `number` is the agent's for a tie that it carries; `host`
    tells several of those at once, where the agent can."""

    __slots__ = (
        "_admit",
        "_coordinator",
        "_end",
        "_state",
        "_ties",
        "caller",
        "group",
        "host",
        "number",
        "send",
        "task_id",
        "waiters",
    )

    def __init__(self, ties: Ties, admit: Admit, send: Send, end: End, number: int = 0) -> None:
        self._ties = ties
        self._coordinator = ties.coordinator
        self._state = ties.state
        self._admit = admit
        self._end = end
        self.caller = Caller("")
        self.task_id = ""
        self.group: Group | None = None
        self.waiters: dict[str, Waiter] = {}
        self.number = number
        self.host: Host | None = None
        self.send = send

    @property
    def worker_id(self) -> str:
        return self.caller.worker_id

    def hear(self, words: rk.RankWords) -> None:
        """Raises the StrataError with which the stream must end. Nothing that a rank says of barriers overtakes its
        arrival; a beat does, because a thousand of them would part those who come together."""
        if words.arrivals or words.withdrawn or not self.caller.worker_id:
            self._coordinator.settle_arrivals()
        if not self.caller.worker_id:
            self._greet(words)
        if words.HasField("beat"):
            self._on_beat(words)
        for request in words.arrivals:
            self.check_own(request)
            self.arrive(request)
        if words.withdrawn:
            self._ties.note_waits()
        for request_id in words.withdrawn:
            waiter = self.waiters.pop(request_id, None)
            if waiter is not None:
                self._coordinator.give_up(waiter, self.worker_id)

    def close(self, *, broken: bool = False) -> None:
        """The rank says no more here. If it did not say so, it is suspect until it is heard of again."""
        self._coordinator.settle_arrivals()
        self._ties.note_waits()
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters.values():
            self._coordinator.give_up(waiter, self.worker_id)
        if self.caller.worker_id and self._ties.remove(self, self.task_id):
            if broken:
                self._state.membership.suspect(self.caller.worker_id, self.caller.incarnation)
            else:  # it will be silent: it has ended, and its agent says how
                self._state.membership.pulses.note_farewell(self.caller.worker_id)

    def fence(self, error: Fenced) -> None:
        self._ties.remove(self, self.task_id)
        self._end(error)

    def _greet(self, words: rk.RankWords) -> None:
        hello = words.hello
        if not hello.worker_id:
            raise InvalidArgument("a rank's first message must have its hello")
        caller = Caller(worker_id=hello.worker_id, incarnation=hello.incarnation)
        worker = self._state.membership.authorize(caller, self._coordinator.now())
        self._admit(hello, worker)
        self._check_told(hello)
        self.caller = Caller(worker_id=worker.worker_id, incarnation=worker.incarnation)
        self.task_id = worker.task_id
        self.group = self._state.membership.group_of(worker)
        self._ties.add(self, self.task_id)
        world = self._ties.world(self.task_id)
        if world is not None or not words.HasField("beat"):
            self._acknowledge(0, world)

    def _check_told(self, hello: rk.RankHello) -> None:
        """Raises Fenced for one that passed a barrier of which this coordinator does not know: others were not told,
        and wait there. It is lost, so that these hear what became of it."""
        if self._state.cluster.has_forgotten(hello.told_term, hello.told_record):
            reason = "it was released from a barrier just before the coordinator's host failed, which has forgotten it"
            self._coordinator.apply(c.LoseWorkers(gone={hello.worker_id: reason}))
            raise Fenced(f"fenced: worker {hello.worker_id} is out: {reason}")

    def _on_beat(self, words: rk.RankWords) -> None:
        beat, membership = words.beat, self._state.membership
        same = self.group is not None and membership.groups.get(self.task_id) is self.group  # nobody came or went
        known = membership.workers[self.worker_id] if same else None
        if known is None:
            beat.worker_id, beat.incarnation = self.caller.worker_id, self.caller.incarnation
        worker = take_beat(self._state, beat, self._coordinator.now(), known)
        self.group = membership.group_of(worker)
        self._acknowledge(words.sequence)

    def _acknowledge(self, sequence: int, world: rk.World | None = None) -> None:
        payload = self._ties.ack(self.task_id, sequence)
        if world is not None:  # one part of a message and then another are the whole
            payload += rk.RankNews(world=world).SerializeToString()
        self._coordinator.when_settled(lambda error: None if error else self.send(payload))

    # --- barriers

    def check_own(self, request: pb.BarrierRequest) -> None:
        """Raises PermissionDenied if it is the arrival of another."""
        if request.worker_id != self.caller.worker_id:
            raise PermissionDenied(f"worker {self.caller.worker_id} cannot arrive as {request.worker_id[:80]!r}")

    def arrive(self, request: pb.BarrierRequest) -> None:
        """Arrives by itself; a refusal is sent as the answer."""
        self._ties.note_waits()
        if request.request_id in self.waiters:
            return
        try:
            if not request.request_id:
                raise InvalidArgument("an arrival on a rank's stream needs a request_id")
            waiter = self._coordinator.arrive(convert.from_barrier_request(request), self.on_outcome)
        except StrataError as error:
            self._answer(request.request_id, error)
        else:
            self.waiters[request.request_id] = waiter
            if request.incarnation == self.caller.incarnation:  # it was let in, as by a beat
                self.group = self._state.membership.groups[self.task_id]

    def on_outcome(self, waiter: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
        """Of a barrier that this rank waits at, `worker_ids` being itself."""
        self.waiters.pop(waiter.request_id, None)
        self._state.barriers.collected(waiter.key, worker_ids)
        if isinstance(outcome, Outcome):
            self.send(self._ties.releases.write_alone(outcome, waiter.request_id, self.worker_id))
        elif isinstance(outcome, StrataError):
            self._answer(waiter.request_id, outcome)
        else:
            raise outcome

    def _answer(self, request_id: str, error: StrataError) -> None:
        result = to_result(error)
        result.request_id = request_id
        self.send(rk.RankNews(result=result).SerializeToString())

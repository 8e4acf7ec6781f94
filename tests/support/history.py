"""The judge of a simulated cluster: it hears every event and every answer, and knows nothing of how they were made.

Each rule of the architecture's list has its check here; a broken one raises `Violation` with what was seen.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from strata.cluster import events as e
from strata.coordinator.state.outcomes import Outcome, requests_of
from strata.types.barriers import BarrierArrival, BarrierKey, BarrierPolicy
from strata.types.tasks import incarnation_of

__all__ = ["Group", "History", "Violation"]


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class Group:
    """The group as its events tell it."""

    generation: int = 0
    size: int | None = None
    attempt: int = 0
    alive: dict[str, int] = field(default_factory=dict)  # worker → rank
    incarnations: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Round:
    """A barrier that is open: who has to come, by id and by rank."""

    policy: BarrierPolicy
    members: dict[str, int]


class History:
    """Everything that happened, and what must never happen."""

    def __init__(self) -> None:
        self.durable: list[e.Event] = []
        self.groups: dict[str, Group] = defaultdict(Group)
        self._rounds: dict[BarrierKey, _Round] = {}
        self._writers: dict[tuple[str, int, int], str] = {}
        self._told_generation: dict[str, int] = defaultdict(int)
        self._outcomes: set[Outcome] = set()
        self._kept: dict[Outcome, tuple[int, int]] = {}  # told before they were durable: term, record
        self._decided: dict[tuple[str, str], Outcome] = {}
        self._arrived: set[tuple[BarrierKey, int, str, str]] = set()
        self._given_up: set[tuple[BarrierKey, int, str]] = set()
        self._issued: set[tuple[str, str]] = set()
        self._tasks: dict[str, str] = {}
        self._acknowledged: set[str] = set()
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._votes: dict[str, set[int]] = defaultdict(set)
        self._committed: set[str] = set()

    # --- what the coordinator decides, durable or not yet

    def on_applied(self, events: list[e.Event]) -> None:
        lost: dict[str, set[str]] = defaultdict(set)
        for event in events:
            match event:
                case e.MembersLost():
                    lost[event.task_id].update(event.worker_ids)
                case e.BarrierReleased():
                    self._check_release(event)
                case e.BarrierBroke():
                    self._check_break(event, lost[event.task_id])
                case _:
                    pass
            self._follow(event)
        for task_id, dead in lost.items():
            self._check_none_waits_for(task_id, dead)

    def on_arrival(self, key: BarrierKey, number: int, arrival: BarrierArrival) -> None:
        """An arrival was accepted. Called before the events that it caused."""
        group = self.groups[key.task_id]
        if key not in self._rounds:
            self._rounds[key] = _Round(arrival.policy, dict(group.alive))
        self._rounds[key].members[arrival.worker_id] = group.alive[arrival.worker_id]
        self._given_up.discard((key, number, arrival.worker_id))
        self._arrived.add((key, number, arrival.worker_id, arrival.request_id))

    def on_gave_up(self, key: BarrierKey, number: int, worker_id: str) -> None:
        """The coordinator was told that this worker no longer waits in this round."""
        self._given_up.add((key, number, worker_id))

    def on_closed(self, still_open: Iterable[BarrierKey], waited_for: set[BarrierKey]) -> None:
        """The barriers that are open now. One may end without an outcome only when nobody waits there any more."""
        for key in self._rounds.keys() - set(still_open):
            if key in waited_for:
                raise Violation(f"{key} vanished while somebody waited")
            del self._rounds[key]

    def on_crash(self, kept: list[e.Event], *, power: bool) -> None:
        """What was not durable is gone; the next life begins with what was, and what was kept if the power was not
        lost."""
        for event in kept:
            if power and isinstance(event, Outcome):
                self._outcomes.discard(event)
                del self._kept[event]
                for request in requests_of(event).items():
                    self._decided.pop(request, None)
            else:
                self.on_durable(event)
        self._given_up.clear()
        self._arrived.clear()
        self._rounds.clear()
        self.groups.clear()
        self._votes.clear()
        self._committed.clear()
        for event in self.durable:
            self._follow(event)

    # --- what is durable, and what anybody hears

    def on_kept(self, event: e.BarrierReleased, position: tuple[int, int]) -> None:
        """It may be told from now on."""
        self._kept[event] = position
        self._decide(event)

    def is_kept(self, event: e.Event) -> bool:
        return isinstance(event, Outcome) and event in self._kept

    def position_of(self, event: Outcome) -> tuple[int, int]:
        return self._kept.get(event, (0, 0))

    def _decide(self, event: Outcome) -> None:
        self._outcomes.add(event)
        for request in requests_of(event).items():
            if request[1]:
                self._check_decided_once(request, event)

    def on_durable(self, event: e.Event) -> None:
        self.durable.append(event)
        if isinstance(event, e.BarrierReleased | e.BarrierBroke):
            self._decide(event)
        elif isinstance(event, e.TaskSubmitted) and event.request_id:
            if event.request_id in self._tasks:
                raise Violation(f"request {event.request_id} became two tasks")
            self._tasks[event.request_id] = event.task_id

    def on_issued(self, worker_id: str, request_id: str) -> None:
        self._issued.add((worker_id, request_id))

    def on_accepted(self, task_id: str, rank: int, generation: int, incarnation: str) -> None:
        """A mutating call of a rank was acknowledged."""
        writer = self._writers.setdefault((task_id, rank, generation), incarnation)
        if writer != incarnation:
            raise Violation(
                f"rank {rank} of {task_id!r} wrote as {writer} and {incarnation} in generation {generation}"
            )

    def on_told(self, task_id: str, generation: int) -> None:
        """A client was told this generation."""
        if generation < self._told_generation[task_id]:
            raise Violation(f"generation {generation} after {self._told_generation[task_id]} in {task_id!r}")
        self._told_generation[task_id] = generation

    def on_outcome_told(self, worker_id: str, request_id: str, outcome: Outcome) -> None:
        if outcome not in self._outcomes:
            raise Violation(f"{worker_id} was told of {outcome}, which is not durable")
        requests = requests_of(outcome)
        if worker_id not in requests and isinstance(outcome, e.BarrierBroke) and outcome.expired:
            return  # it came too late
        key = BarrierKey(outcome.task_id, outcome.barrier_id, outcome.step)
        arrived = (key, outcome.round, worker_id, request_id) in self._arrived
        if not arrived and requests.get(worker_id) != request_id:
            raise Violation(f"{worker_id} was told for its request {request_id} of {outcome}")

    def on_task_told(self, request_id: str, task_id: str) -> None:
        self._acknowledged.add(task_id)
        if self._tasks.get(request_id) != task_id:
            raise Violation(
                f"request {request_id} was answered with {task_id}, durable is {self._tasks.get(request_id)}"
            )

    def check_after_restart(self, known_tasks: set[str], generations: dict[str, int]) -> None:
        if not self._acknowledged <= known_tasks:
            raise Violation(f"acknowledged tasks were lost: {self._acknowledged - known_tasks}")
        for task_id, told in self._told_generation.items():
            if generations.get(task_id, 0) < told:
                raise Violation(f"generation of {task_id!r} went back to {generations.get(task_id, 0)} from {told}")

    def outcome_of(self, worker_id: str, request_id: str) -> Outcome | None:
        return self._decided.get((worker_id, request_id))

    # --- the rules

    def _check_release(self, event: e.BarrierReleased) -> None:
        key = BarrierKey(event.task_id, event.barrier_id, event.step)
        opened = self._rounds.pop(key, None)
        if opened is None:
            raise Violation(f"a barrier was released that nobody had opened: {event}")
        for request in requests_of(event).items():
            if (key, event.round, request[0]) in self._given_up:
                raise Violation(f"{request[0]} had given up before {event}")
            if request[1] and request not in self._issued:
                raise Violation(f"{request} never arrived at {event}")
        group = self.groups[event.task_id]
        here = set(event.worker_ids)
        needed = set(opened.members)
        if opened.policy is BarrierPolicy.WAIT:
            ranks_here = {group.alive[name] for name in here}
            absent: set[object] = {rank for rank in opened.members.values() if rank not in ranks_here}
        elif opened.policy is BarrierPolicy.SHRINK:
            absent = {name for name in needed - here if name in group.alive}
        else:
            absent = set(needed - here)
        if group.size is not None and opened.policy is not BarrierPolicy.SHRINK:
            absent = set() if len(here) >= group.size else {"too few"}
        if absent:
            raise Violation(f"released without {absent}: {event}")

    def _check_break(self, event: e.BarrierBroke, lost: set[str]) -> None:
        key = BarrierKey(event.task_id, event.barrier_id, event.step)
        opened = self._rounds.pop(key, None)
        if opened is None:
            raise Violation(f"a barrier broke that nobody had opened: {event}")
        if event.expired:
            if set(event.missing) & set(event.worker_ids):
                raise Violation(f"named as missing although it arrived: {event}")
            return
        dead = lost & set(opened.members) if self.groups[event.task_id].size is None else lost
        if not event.missing or set(event.missing) != dead:
            raise Violation(f"it names {event.missing}, the dead are {dead}: {event}")

    def _check_none_waits_for(self, task_id: str, dead: set[str]) -> None:
        for key, opened in self._rounds.items():
            if key.task_id == task_id and opened.policy is BarrierPolicy.FAIL and dead & set(opened.members):
                raise Violation(f"{key} still waits for the dead {dead & set(opened.members)}")

    def _check_decided_once(self, request: tuple[str, str], event: Outcome) -> None:
        earlier = self._decided.setdefault(request, event)
        if earlier is not event:
            raise Violation(f"{request} was decided twice: {earlier} and {event}")

    # --- following

    def _follow(self, event: e.Event) -> None:
        match event:
            case e.WorkerJoined():
                group = self.groups[event.task_id]
                self._check_grows(group, event.generation)
                if group.attempt and event.incarnation != incarnation_of(event.task_id, group.attempt, event.rank):
                    raise Violation(f"a rank of another attempt than {group.attempt} was let in: {event}")
                if event.rank in group.alive.values():
                    raise Violation(f"rank {event.rank} is held twice: {event}")
                group.alive[event.worker_id] = event.rank
                group.incarnations[event.worker_id] = event.incarnation
            case e.MembersLost():
                group = self.groups[event.task_id]
                self._check_grows(group, event.generation)
                for worker_id in event.worker_ids:
                    del group.alive[worker_id]
                self._shrink_rounds(event)
            case e.TaskSubmitted():
                self.groups[event.task_id].size = event.worker_count
            case e.TaskChanged():
                self.groups[event.task_id].attempt = event.attempt
            case e.CheckpointBegun():
                self._ranks[event.attempt] = event.ranks
            case e.CheckpointVoted():
                self._votes[event.attempt].add(event.rank)
            case e.CheckpointCommitted():
                self._check_commit(event)
            case _:
                pass

    def _shrink_rounds(self, event: e.MembersLost) -> None:
        for key, opened in list(self._rounds.items()):
            if key.task_id == event.task_id and opened.policy is BarrierPolicy.SHRINK:
                for worker_id in event.worker_ids:
                    opened.members.pop(worker_id, None)

    def _check_grows(self, group: Group, generation: int) -> None:
        if generation <= group.generation:
            raise Violation(f"generation {generation} after {group.generation}")
        group.generation = generation

    def _check_commit(self, event: e.CheckpointCommitted) -> None:
        if event.attempt in self._committed:
            raise Violation(f"attempt {event.attempt} was committed twice")
        self._committed.add(event.attempt)
        missing = set(self._ranks[event.attempt]) - self._votes[event.attempt]
        if missing:
            raise Violation(f"attempt {event.attempt} was committed without ranks {missing}")

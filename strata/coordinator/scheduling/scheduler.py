"""Carries out the decisions about tasks: asks `placement` what should be, has it journaled, and only then tells the
agents. Driven by events and a slow tick; everything it keeps itself is rebuilt from the agents' reports.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strata.cluster import events as e
from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.draining import hearing_s, plan_departure
from strata.coordinator.scheduling.growth import Growth
from strata.coordinator.scheduling.hangs import Hangs
from strata.coordinator.scheduling.homes import hosts_apart, within_reach
from strata.coordinator.scheduling.launch import desired_process, pick_ports
from strata.coordinator.scheduling.parting import any_left, plan_parting
from strata.coordinator.scheduling.progress import takes_part
from strata.coordinator.scheduling.stragglers import StragglerRule, Stragglers
from strata.coordinator.state import commands as c
from strata.coordinator.state import endings as d
from strata.coordinator.state import placement as p
from strata.coordinator.state import replacement as r
from strata.coordinator.state.membership import Caller
from strata.errors import StrataError
from strata.protocol.fields import from_message
from strata.protocol.generated import agents_pb2 as ag
from strata.trust.proofs import SECRET_VARIABLE, Proofs
from strata.types.tasks import PORTS, TaskCourse, TaskStatus, worker_id_of
from strata.types.workers import WorkerSpec

__all__ = ["Scheduler"]

_log = logging.getLogger(__name__)

_TICK_S = 0.25
_WATCH_S = 0.5
_WAKING = (e.TaskSubmitted, e.TaskChanged, e.AgentJoined, e.AgentDraining, e.AgentLost, e.MembersLost)

Push = Callable[[ag.DesiredState], None]


@dataclass(frozen=True, slots=True)
class _Process:
    """What an agent last said of a rank's process."""

    agent_id: str
    running: bool
    end: d.RankEnd | None


class Scheduler:
    """One per coordinator. `entrypoints` maps task types to command lines; `proofs` makes the secrets of attempts;
    `hang_timeout_s` is for tasks that have none of their own; `ports` are where ranks may meet."""

    def __init__(
        self,
        coordinator: Coordinator,
        entrypoints: Mapping[str, Sequence[str]],
        proofs: Proofs,
        hang_timeout_s: float | None = None,
        straggler: StragglerRule = StragglerRule(),  # noqa: B008  # frozen
        ports: range = range(*PORTS),
    ) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self._entrypoints = entrypoints
        self._proofs, self._ports = proofs, ports
        self._agents: dict[str, Push] = {}
        self._sent: dict[str, bytes] = {}
        self._stale = True  # something changed that agents may have to hear of
        self._version = 0
        self._watched_at = 0.0
        self._processes: dict[tuple[str, int, int, int], _Process] = {}  # task, attempt, rank, life
        self._growth = Growth(coordinator.now().monotonic)
        self.hangs = Hangs(coordinator.state, hang_timeout_s)
        self._stragglers = Stragglers(coordinator.state.membership.pulses, straggler)
        self._wake = asyncio.Event()
        coordinator.listen(self._on_event)

    def _on_event(self, event: e.Event) -> None:
        if isinstance(event, _WAKING):
            self._wake.set()
        if isinstance(event, e.TaskChanged | e.AgentDraining):
            self._stale = True

    # --- agents

    def attach(self, agent_id: str, push: Push) -> None:
        """From now on this agent hears what should run on its host. A newer stream of the same agent replaces it."""
        self._agents[agent_id] = push
        self._sent.pop(agent_id, None)
        self._stale = True
        self._wake.set()

    def detach(self, agent_id: str, push: Push) -> bool:
        """Forgets this stream. Returns False when a newer one has taken its place already."""
        if self._agents.get(agent_id) != push:  # not `is`: a bound method is a new object each time it is named
            return False
        del self._agents[agent_id]
        self._growth.note_broken(agent_id, self._coordinator.now().monotonic)
        return True

    async def report(self, agent_id: str, hostname: str, report: ag.ProcessReport) -> None:
        """A rank's process started or ended. Reports of attempts that are over change nothing but the slot count."""
        key = (report.task_id, report.attempt, report.rank, report.life)
        known = self._processes.get(key)
        if known is not None and not known.running:
            return  # what has ended stays ended, as it was first told
        end = None if report.running else _end_of(report)
        task = self._state.tasks.tasks.get(report.task_id)
        over = task is None or task.status.final
        if over and end is not None:
            self._processes.pop(key, None)
        else:
            self._processes[key] = _Process(agent_id, report.running, end)
        self.hangs.hear_standing(report)
        if task is not None and not over and _is_current(task, key):
            self._follow(task, report, hostname, agent_id, end)
        await self._coordinator.settled()
        self._wake.set()

    def _follow(
        self, task: Task, report: ag.ProcessReport, hostname: str, agent_id: str, end: d.RankEnd | None
    ) -> None:
        """Membership hears of it at once: a death breaks barriers now, not when a lease runs out. A rank that finished
        stays a member until its task ends, for its peers still count on their generation."""
        if end is None:
            spec = WorkerSpec(
                worker_id=worker_id_of(task.task_id, report.rank),
                task_id=task.task_id,
                incarnation=task.incarnation(report.rank),
                rank=report.rank,
                hostname=hostname,
                agent_id=agent_id,
                metadata={"pid": str(report.pid)},
            )
            if not self._joined(task, report.rank):
                self._try(c.RegisterWorker(spec=spec))
        elif not end.well and self._joined(task, report.rank):
            asked = task.status is not TaskStatus.RUNNING
            why = f"stopped, since the task is {task.status}" if asked else str(end)
            self._try(c.LoseWorkers(gone={worker_id_of(task.task_id, report.rank): why}, left=asked))

    def _joined(self, task: Task, rank: int) -> bool:
        worker = self._state.membership.workers.get(worker_id_of(task.task_id, rank))
        return worker is not None and worker.alive and worker.incarnation == task.incarnation(rank)

    def _try(self, command: c.Command[Any]) -> None:
        try:
            self._coordinator.apply(command)
        except StrataError as error:
            _log.warning("%s: %s", type(command).__name__, error)

    # --- deciding

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self.step()
            try:
                async with asyncio.timeout(_TICK_S):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def step(self) -> None:
        """Runs one round: decides, waits for the journal, tells the agents."""
        now = self._coordinator.now().monotonic
        look = now - self._watched_at >= _WATCH_S
        for task_id in [task.task_id for task in self._state.tasks.tasks.values() if not task.status.final]:
            change = self._decide(self._state.tasks.task(task_id))
            if change is not None:
                self._carry_out(change)
            self._part(self._state.tasks.task(task_id))
            if look:
                self._watched_at = now
                self._watch(self._state.tasks.task(task_id))
                self._grow(self._state.tasks.task(task_id))
        self._place_queued()
        self._keep_finished()
        await self._coordinator.settled()
        self._tell()

    def _decide(self, task: Task) -> c.ChangeTask | None:
        now = self._coordinator.now()
        step = self._state.checkpoints.latest_step(task.task_id)
        match task.status:
            case TaskStatus.RUNNING:
                members, pulses = self._state.membership.alive_in(task.task_id), self._state.membership.pulses
                left = any_left(members, pulses)
                chance = random.random()  # noqa: S311  # jitter
                ends = self._ends(task)
                change = d.plan_end(task, ends, step, now, chance, left=left)
                if change is not None:
                    return r.plan_replace(task, ends, change, self._hosts(task), step) or change
                saved = self._state.checkpoints.latest(task.task_id)
                return plan_departure(task, self._state.agents.agents, members, pulses, saved, now)
            case TaskStatus.STOPPING:
                return d.plan_stopped(task, self._ends(task))
            case TaskStatus.RECOVERING if len(self._ends(task)) == task.size:
                change = d.plan_restart(task, self._hosts(task), step, now)
                away = [name for name in self._state.agents.alive() if name not in self._agents]
                return None if self._growth.waits(task, change, away, now.monotonic) else change
            case _:
                return None

    def _part(self, task: Task) -> None:
        """A task that is going is told at which step its ranks leave together."""
        if not d.is_going(task) or task.course.stop_agreed:
            return
        saved, now = self._state.checkpoints.latest(task.task_id), self._coordinator.now()
        ahead_s = hearing_s(task, self._state.agents.agents, saved, now)
        membership = self._state.membership
        course = plan_parting(task.course, membership.alive_in(task.task_id), membership.pulses, ahead_s)
        if course is not None:
            self._say(task, task.reason, course)

    def _watch(self, task: Task) -> None:
        """A task that stands still says so, and one that a slow rank holds up."""
        members = self._state.membership.alive_in(task.task_id)
        part = r.plan_part(task, takes_part(members, self._state.membership.pulses))
        if part is not None:
            task = self._carry_out(part)
        if task.status is TaskStatus.RUNNING and len(members) == task.size:
            now = self._coordinator.now().monotonic
            verdict = self.hangs.judge(task, members, self._ends(task), now)
            self._stale = self._stale or self.hangs.asks(task)
            if verdict is not None:
                self._say(task, *verdict)
            elif (change := self._stragglers.plan(task, members, lambda: self._hosts(task), now)) is not None:
                self._carry_out(change)

    def _say(self, task: Task, reason: str, course: TaskCourse) -> Task:
        """The task stays as it is; only its reason or its course changes."""
        return self._carry_out(d.plan_change(task, task.status, reason, course))

    def _grow(self, task: Task) -> None:
        if task.size < task.spec.worker_count:
            change = self._growth.plan(task, self._hosts(task), self._queued(), self._coordinator.now().monotonic)
            if change is not None:
                self._carry_out(change)

    def _queued(self) -> list[Task]:
        return [task for task in self._state.tasks.tasks.values() if task.status is TaskStatus.QUEUED]

    def _place_queued(self) -> None:
        queued = self._queued()
        if not queued:
            return
        for task_id, plan in p.plan_queue(queued, self._hosts()).items():
            task = self._state.tasks.task(task_id)
            if isinstance(plan, p.Lacking):
                self._say(task, plan.reason, task.course)
            else:
                step = self._state.checkpoints.latest_step(task_id)
                self._carry_out(d.plan_start(task, plan, step))

    def _carry_out(self, change: c.ChangeTask) -> Task:
        before = self._state.tasks.task(change.task_id)
        if (change.attempt, change.course.lives) != (before.attempt, before.course.lives):
            self._let_go(before, first_rank=len(change.course.placement))
            host = self._state.agents.agents[change.course.placement[0]]
            master, gang = pick_ports(self._ports, self._state.tasks.tasks.values())
            course = replace(change.course, master_addr=host.address, master_port=master, gang_port=gang)
            change = replace(change, course=course)
        task = self._coordinator.apply(change).reply
        if task.status.final:
            self._dismiss(task)
        elif task.status is TaskStatus.RECOVERING and task.course.leaving:
            self._let_go(task)
        elif task.course.lives != before.course.lives:
            self._forget_replaced(task)
        return task

    def _forget_replaced(self, task: Task) -> None:
        """Processes that ended and have a successor are of no more use; one that still runs holds its slot."""
        for key in [key for key, known in self._processes.items() if key[0] == task.task_id and not known.running]:
            if not _is_current(task, key):
                del self._processes[key]

    def _let_go(self, task: Task, first_rank: int = 0) -> None:
        """Members whose processes have ended leave, from this rank on: the next attempt may have fewer of them."""
        for worker in self._state.membership.alive_in(task.task_id):
            if worker.rank < first_rank:
                continue
            caller = Caller(worker_id=worker.worker_id, incarnation=worker.incarnation)
            self._try(c.DeregisterWorker(caller=caller, reason=f"its task is {task.status}"))

    def _dismiss(self, task: Task) -> None:
        """The members of a task that is over leave; its processes' reports are only needed for the slots they hold."""
        self.hangs.forget(task)
        self._growth.forget(task.task_id)
        self._stragglers.forget(task.task_id)
        self._let_go(task)
        for key in [key for key, known in self._processes.items() if key[0] == task.task_id and not known.running]:
            del self._processes[key]

    def _keep_finished(self) -> None:
        """A rank that finished early holds its place without heartbeats, unless somebody waits for it in vain."""
        now = self._coordinator.now()
        for key, known in list(self._processes.items()):
            task_id, _, rank, _ = key
            task = self._state.tasks.tasks.get(task_id)
            if task is None or task.status is not TaskStatus.RUNNING or not _is_current(task, key):
                continue
            if known.end is None or not known.end.well or not self._joined(task, rank):
                continue
            worker = self._state.membership.workers[worker_id_of(task_id, rank)]
            waiting = [b for b in self._state.barriers.open.values() if b.key.task_id == task_id]
            if any(worker.worker_id in self._state.barriers.missing(barrier) for barrier in waiting):
                self._try(c.LoseWorkers(gone={worker.worker_id: "has finished and will not come to a barrier"}))
            else:
                self._state.membership.pulses.touch(worker.worker_id, now)

    # --- what is known

    def _ends(self, task: Task) -> dict[int, d.RankEnd]:
        """The ranks of the current attempt that are gone: reported so, or out of reach with a host that is lost."""
        ends: dict[int, d.RankEnd] = {}
        for rank, agent_id in enumerate(task.course.placement):
            known = self._processes.get((task.task_id, task.attempt, rank, task.course.life(rank)))
            if known is not None and known.end is not None:
                ends[rank] = known.end
                continue
            worker = self._state.membership.workers.get(worker_id_of(task.task_id, rank))
            attached = agent_id in self._agents
            if self._state.agents.took(agent_id, worker, task.incarnation(rank), attached=attached):
                ends[rank] = d.RankEnd(rank=rank, exit_code=None, message=f"agent {agent_id} is lost", preempted=True)
        return ends

    def _hosts(self, of: Task | None = None) -> list[p.Host]:
        """Agents that are attached now, as a task finds them: with the slots that others hold."""
        mine, excluded = (of.task_id, of.course.excluded) if of is not None else ("", ())
        held = Counter[str]()
        for task in self._state.tasks.tasks.values():
            if task.task_id != mine and not task.status.final:
                held.update(task.course.placement)
        for key, known in self._processes.items():
            owner = self._state.tasks.tasks.get(key[0])
            leftover = owner is None or owner.status.final or not _is_current(owner, key)
            if known.running and leftover and key[0] != mine:
                held[known.agent_id] += 1
        attached = [agent for name, agent in self._state.agents.agents.items() if agent.alive and name in self._agents]
        hosts = [p.host_of(agent, held[agent.agent_id], agent.agent_id in excluded) for agent in attached]
        return within_reach(of, self._state.checkpoints.latest(mine), self._state.agents.agents, hosts)

    # --- telling

    def _tell(self) -> None:
        """Sends what should run on a host to every agent for which that has changed since it was last told."""
        if not self._stale:
            return
        self._stale = False
        wanted: dict[str, list[ag.DesiredProcess]] = {agent_id: [] for agent_id in self._agents}
        for task in self._state.tasks.tasks.values():
            if task.status.final:
                continue
            known = self._state.cluster.datasets.get(task.spec.dataset_id)
            dataset = known.spec if known is not None else None
            private = self._private(task)
            for rank, agent_id in enumerate(task.course.placement):
                if agent_id in wanted:
                    look = self.hangs.look_of(task, rank)
                    wanted[agent_id].append(desired_process(task, rank, self._entrypoints, dataset, private, look))
        for agent_id, processes in wanted.items():
            agent = self._state.agents.agents.get(agent_id)
            draining, leave_by = (bool(agent.draining), agent.deadline) if agent else (False, None)
            desired = ag.DesiredState(processes=processes, draining=draining, leave_by=leave_by)
            content = desired.SerializeToString(deterministic=True)
            if self._sent.get(agent_id) == content:
                continue
            self._sent[agent_id] = content
            self._version += 1
            desired.version = (self._state.term << 32) + self._version
            self._agents[agent_id](desired)

    def _private(self, task: Task) -> dict[str, str]:
        """The variables that only the task's own ranks may see."""
        secret = self._proofs.mint_secret(task.task_id, task.attempt)
        apart = hosts_apart(task, self._state.agents.agents)
        return {**self._coordinator.vault.env_of(task.task_id), **apart, SECRET_VARIABLE: secret}


def _is_current(task: Task, key: tuple[str, int, int, int]) -> bool:
    """Whether this process (task, attempt, rank, life) has its rank now."""
    _, attempt, rank, life = key
    return bool(task.course.placement) and (task.attempt, task.course.life(rank)) == (attempt, life)


def _end_of(report: ag.ProcessReport) -> d.RankEnd:
    unseen = report.exit_unknown or report.unstarted or report.hindered
    exit_code = None if unseen else report.exit_code
    return from_message(d.RankEnd, report, exit_code=exit_code, preempted=report.stopped)

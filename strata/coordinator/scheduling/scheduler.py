"""Carries out the decisions about tasks: asks `placement` what should be, has it journaled, and only then tells the
agents. Driven by events and a slow tick; everything it keeps itself is rebuilt from the agents' reports.
"""

import asyncio
import logging
import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from strata.cluster import events as e
from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.desired import DesiredStates, Push
from strata.coordinator.scheduling.draining import hearing_s, plan_departure
from strata.coordinator.scheduling.growth import Growth
from strata.coordinator.scheduling.hangs import Hangs
from strata.coordinator.scheduling.homes import Homes
from strata.coordinator.scheduling.launch import Launch, pick_ports
from strata.coordinator.scheduling.parting import plan_parting
from strata.coordinator.scheduling.processes import Held, Place, Processes, end_of, is_current
from strata.coordinator.scheduling.sights import Sight, Sights
from strata.coordinator.scheduling.stragglers import StragglerRule, Stragglers
from strata.coordinator.state import commands as c
from strata.coordinator.state import endings as d
from strata.coordinator.state import placement as p
from strata.coordinator.state import replacement as r
from strata.errors import StrataError
from strata.protocol.generated import agents_pb2 as ag
from strata.trust.proofs import SECRET_VARIABLE, Proofs
from strata.types.tasks import PORTS, TaskCourse, TaskStatus, worker_id_of
from strata.types.workers import WorkerSpec

__all__ = ["Scheduler"]

_log = logging.getLogger(__name__)

_TICK_S = 0.25
_LEAVE_TOGETHER = 1_000  # members of a task that is over: with what follows from it that takes 20 ms of the loop
_WAKING = (e.TaskSubmitted, e.TaskChanged, e.AgentJoined, e.AgentDraining, e.AgentLost, e.MembersLost)


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
        self._processes = Processes()
        self._gone: dict[bool, dict[str, str]] = {}  # of this turn of the loop: was it asked to go, who, why
        self._leaving: dict[str, str] = {}  # members whose task is over or starts anew, and why they leave
        self._growth = Growth(coordinator.now().monotonic)
        self.hangs = Hangs(coordinator.state, hang_timeout_s)
        self._stragglers = Stragglers(coordinator.state.membership.pulses, straggler)
        self._sights = Sights(coordinator, self.hangs, self._stragglers)
        self._homes = Homes(coordinator.state)
        self._desired = DesiredStates(self._launch, self.hangs.look_of)
        self._wake = asyncio.Event()
        coordinator.listen(self._on_event)

    def _on_event(self, event: e.Event) -> None:
        if isinstance(event, _WAKING):
            self._wake.set()
        if isinstance(event, e.TaskChanged):
            self._desired.note_task(event.task_id)
        elif isinstance(event, e.AgentDraining):
            self._desired.note_agent(event.agent_id)

    # --- agents

    def attach(self, agent_id: str, push: Push) -> None:
        """From now on this agent hears what should run on its host. A newer stream of the same agent replaces it."""
        self._desired.attach(agent_id, push)
        self._wake.set()

    def detach(self, agent_id: str, push: Push) -> bool:
        """Forgets this stream. Returns False when a newer one has taken its place already."""
        if not self._desired.detach(agent_id, push):
            return False
        self._growth.note_broken(agent_id, self._coordinator.now().monotonic)
        return True

    async def report(self, agent_id: str, hostname: str, *reports: ag.ProcessReport) -> None:
        """Processes of ranks started or ended. Reports of attempts that are over change nothing but the slot count.
        Ranks that end in one turn of the loop, on all hosts, are lost together: a large task ends as one."""
        for report in reports:
            self._hear(agent_id, hostname, report)
        if self._gone:
            await asyncio.sleep(0)
            self._lose_gone()
        await self._coordinator.settled()
        self._wake.set()

    def _hear(self, agent_id: str, hostname: str, report: ag.ProcessReport) -> None:
        place = Place(report.attempt, report.rank, report.life)
        if self._processes.has_ended(report.task_id, place):
            return  # what has ended stays ended, as it was first told
        end = None if report.running else end_of(report)
        task = self._state.tasks.tasks.get(report.task_id)
        over = task is None or task.status.final
        if end is None:
            self._processes.note_running(report.task_id, place, agent_id, len(report.gpus))
        elif over:
            self._processes.forget(report.task_id, place)
        else:
            self._processes.note_end(report.task_id, place, end)
        self.hangs.hear_standing(report)
        if task is None or over or not is_current(task, place):
            return
        if end is None:
            self._lose_gone()
            self._follow(task, report, hostname, agent_id)
        elif not end.well and self._joined(task, report.rank):
            asked, why = d.parting_of(task, end)
            self._gone.setdefault(asked, {})[worker_id_of(task.task_id, report.rank)] = why

    def _follow(self, task: Task, report: ag.ProcessReport, hostname: str, agent_id: str) -> None:
        """A rank whose process runs is a member. One that finished stays one until its task ends, for its peers still
        count on their generation."""
        if self._joined(task, report.rank):
            return
        spec = WorkerSpec(
            worker_id=worker_id_of(task.task_id, report.rank),
            task_id=task.task_id,
            incarnation=task.incarnation(report.rank),
            rank=report.rank,
            hostname=hostname,
            agent_id=agent_id,
            gpu_count=len(report.gpus),
            metadata={"pid": str(report.pid)},
        )
        self._try(c.RegisterWorker(spec=spec))

    def _lose_gone(self) -> None:
        """Membership hears of ends at once: a death breaks barriers now, not when a lease runs out."""
        gone, self._gone = self._gone, {}
        for asked, reasons in gone.items():
            self._try(c.LoseWorkers(gone=reasons, left=asked))

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
            began = time.perf_counter()
            await self.step()
            await asyncio.sleep(time.perf_counter() - began)  # a step of a large task takes half of the loop at most
            try:
                async with asyncio.timeout(_TICK_S):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def step(self) -> None:
        """Runs one round: decides, waits for the journal, tells the agents. It looks at what has changed: what all
        ranks have said is looked at in slices, by several steps."""
        look = self._sights.begin()
        for task_id in [task.task_id for task in self._state.tasks.unfinished()]:
            self._lose_gone()  # a loss is told before the world that is made of it, or ranks would leave that one too
            if (change := self._decide(self._state.tasks.task(task_id))) is not None:
                self._carry_out(change)
            self._part(self._state.tasks.task(task_id))
            if look:
                self._grow(self._state.tasks.task(task_id))
            self._keep_finished(self._state.tasks.task(task_id), look=look)
        for sight in self._sights.go_on():
            self._judge(sight)
        self._place_queued()
        await self._let_leave()
        await self._coordinator.settled()
        await self._desired.tell(self._state.tasks.unfinished(), self._state.agents.agents, self._state.term)

    def _decide(self, task: Task) -> c.ChangeTask | None:
        now, membership = self._coordinator.now(), self._state.membership
        step = self._state.checkpoints.latest_step(task.task_id)
        match task.status:
            case TaskStatus.RUNNING:
                chance = random.random()  # noqa: S311  # jitter
                ends = self._ends(task)
                left = bool(ends) and membership.any_leaves(task.task_id)
                change = d.plan_end(task, ends, step, now, chance, left=left)
                if change is not None:
                    return r.plan_replace(task, ends, change, self._hosts(task), step) or change
                saved = self._state.checkpoints.latest(task.task_id)
                return plan_departure(task, self._going(task), membership.asked_in(task.task_id), saved, now)
            case TaskStatus.STOPPING:
                return d.plan_stopped(task, self._ends(task))
            case TaskStatus.RECOVERING if len(self._ends(task)) == task.size:
                change = d.plan_restart(task, self._hosts(task), step, now)
                away = [name for name in self._state.agents.alive() if name not in self._desired.attached]
                return None if self._growth.waits(task, change, away, now.monotonic) else change
            case _:
                return None

    def _going(self, task: Task) -> list[Agent]:
        """The hosts of its ranks that go away."""
        return self._state.agents.draining(self._desired.launch_of(task).agents)

    def _part(self, task: Task) -> None:
        """A task that is going is told at which step its ranks leave together."""
        if not d.is_going(task) or task.course.stop_agreed:
            return
        saved, now = self._state.checkpoints.latest(task.task_id), self._coordinator.now()
        ahead_s = hearing_s(self._going(task), saved, now)
        membership = self._state.membership
        course = plan_parting(task.course, membership.alive_in(task.task_id), membership.pulses, ahead_s)
        if course is not None:
            self._say(task, task.reason, course)

    def _judge(self, sight: Sight) -> None:
        """A task that stands still says so, and one that a slow rank holds up."""
        task = sight.task
        if (part := r.plan_part(task, sight.takes_part)) is not None:
            task = self._carry_out(part)
        if len(sight.pauses) != task.size:
            return
        ended, now = self._ends(task), self._coordinator.now().monotonic
        verdict = self.hangs.judge(task, [pause for pause in sight.pauses if pause.rank not in ended], now)
        if self.hangs.asks(task):
            self._desired.note_task(task.task_id)
        if verdict is not None:
            task = self._say(task, *verdict)
        if (change := self._stragglers.plan(task, sight.times, lambda: self._hosts(task), now)) is not None:
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
        return [task for task in self._state.tasks.unfinished() if task.status is TaskStatus.QUEUED]

    def _place_queued(self) -> None:
        queued = self._queued()
        if not queued:
            return
        for task_id, plan in p.plan_queue(queued, self._hosts(), self._homes.within_reach).items():
            task = self._state.tasks.task(task_id)
            if isinstance(plan, p.Lacking):
                self._carry_out(self._homes.plan_wait(task, plan.reason))
            else:
                step = self._state.checkpoints.latest_step(task_id)
                self._carry_out(d.plan_start(task, plan, step))

    def _carry_out(self, change: c.ChangeTask) -> Task:
        before = self._state.tasks.task(change.task_id)
        if (change.attempt, change.course.lives) != (before.attempt, before.course.lives):
            self._let_go(before, first_rank=len(change.course.placement))
            host = self._state.agents.agents[change.course.placement[0]]
            master, gang = pick_ports(self._ports, self._state.tasks.unfinished())
            course = replace(change.course, master_addr=host.address, master_port=master, gang_port=gang)
            change = replace(change, course=replace(course, home=self._homes.home_of(course.placement)))
        task = self._coordinator.apply(change).reply
        if task.status.final:
            self._forget(task)
        elif task.status is TaskStatus.RECOVERING and task.course.leaving:
            self._dismiss(task)
        elif (task.attempt, task.course.lives) != (before.attempt, before.course.lives):
            self._processes.forget_ended(task)
        return task

    def _let_go(self, task: Task, first_rank: int) -> None:
        """Members from this rank on leave before an attempt begins that has fewer of them."""
        members = self._state.membership.alive_in(task.task_id)
        names = [member.worker_id for member in members if member.rank >= first_rank]
        self._try(c.LoseWorkers(gone=dict.fromkeys(names, f"its task is {task.status}"), left=True))

    def _forget(self, task: Task) -> None:
        """A task is over: its processes' reports are only needed for the slots they hold."""
        self.hangs.forget(task)
        self._growth.forget(task.task_id)
        self._stragglers.forget(task.task_id)
        self._dismiss(task)
        self._processes.forget_ended(task)

    def _dismiss(self, task: Task) -> None:
        """The members of a task leave: it is over, or its next attempt has others."""
        members = self._state.membership.alive_in(task.task_id)
        self._leaving.update(dict.fromkeys((member.worker_id for member in members), f"its task is {task.status}"))

    async def _let_leave(self) -> None:
        """So many at a time that the loop serves others between; in one step, so that nobody has joined anew."""
        leaving, self._leaving = list(self._leaving.items()), {}
        for start in range(0, len(leaving), _LEAVE_TOGETHER):
            self._try(c.LoseWorkers(gone=dict(leaving[start : start + _LEAVE_TOGETHER]), left=True))
            await asyncio.sleep(0)

    def _keep_finished(self, task: Task, *, look: bool) -> None:
        """A rank that finished early holds its place without heartbeats, unless somebody waits for it in vain. Leases
        are long: now and then is often enough, but who waits hears of it at once."""
        if task.status is not TaskStatus.RUNNING or not (ends := self._processes.ends(task)):
            return
        barriers, now = self._state.barriers, self._coordinator.now()
        waiting = [barrier for barrier in barriers.open.values() if barrier.key.task_id == task.task_id]
        well = [rank for rank, end in ends.items() if end.well and self._joined(task, rank)] if look or waiting else []
        if not well:
            return
        missed = {name for barrier in waiting for name in barriers.missing(barrier)}
        finished = {worker_id_of(task.task_id, rank) for rank in well}
        self._state.membership.pulses.renew(finished - missed, now)
        if missed & finished:
            why = "has finished and will not come to a barrier"
            self._try(c.LoseWorkers(gone=dict.fromkeys(sorted(missed & finished), why)))

    # --- what is known

    def _ends(self, task: Task) -> dict[int, d.RankEnd]:
        """The ranks of the current attempt that are gone: reported so, or out of reach with a host that is lost."""
        ends = self._processes.ends(task)
        launch, agents = self._desired.launch_of(task), self._state.agents
        for agent_id in self._desired.away(task) | agents.dead(launch.agents):
            attached = agent_id in self._desired.attached
            for rank in launch.ranks_on(agent_id):
                worker = self._state.membership.workers.get(worker_id_of(task.task_id, rank))
                if rank not in ends and agents.took(agent_id, worker, task.incarnation(rank), attached=attached):
                    ends[rank] = d.RankEnd.of_lost_host(rank, agent_id)
        return ends

    def _hosts(self, of: Task | None = None) -> list[p.Host]:
        """Agents that are attached now, as a task finds them: with what others hold there."""
        mine, excluded = (of.task_id, of.course.excluded) if of is not None else ("", ())
        launches = map(self._desired.launch_of, self._state.tasks.unfinished())
        held = self._processes.held(launches, self._state.tasks.tasks, mine)
        agents, listening = self._state.agents, self._desired.attached
        attached = [agents.agents[name] for name in agents.alive() if name in listening]
        taking = [agent for agent in attached if not mine or agent.task_id in ("", mine)]
        hosts = [_host(agent, held, excluded) for agent in taking]
        return hosts if of is None else self._homes.within_reach(of, hosts)

    # --- telling

    def _launch(self, task: Task) -> Launch:
        known = self._state.cluster.datasets.get(task.spec.dataset_id)
        return Launch(task, self._entrypoints, known.spec if known is not None else None, self._private(task))

    def _private(self, task: Task) -> dict[str, str]:
        """The variables that only the task's own ranks may see."""
        secret = self._proofs.mint_secret(task.task_id, task.attempt)
        return {**self._coordinator.vault.env_of(task.task_id), **self._homes.apart(task), SECRET_VARIABLE: secret}


def _host(agent: Agent, held: Held, excluded: Collection[str]) -> p.Host:
    name = agent.agent_id
    return p.host_of(agent, held.slots[name], name in excluded, held.gpus[name])

"""Agents: one per host, with slots for ranks. An agent's death says nothing about its workers, which have leases of
their own; but a worker that beats by itself goes another road at once when its agent is away, so one that is not heard
either went with it.
"""

import math
from collections.abc import Mapping, Set

from strata.cluster.events import AgentDraining, AgentJoined, AgentLost
from strata.cluster.members import Agent, Worker
from strata.cluster.model import Cluster
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.coordinator.state.pulses import Pulses
from strata.errors import Conflict, Fenced, InvalidArgument, NotFound
from strata.types.plain import shared
from strata.types.shown import check_text
from strata.types.workers import AgentSpec, MemberState

__all__ = ["Agents"]

_RETURN_S = 0.5  # within which a worker that lives has opened the straight road
_GONE_WITH = 0.8  # of an agent's lease, without a beat: 4 s

_MAX_REASON = 500  # characters


class Agents:
    """All agents, by the cluster's records. `lease_s` is how long one lives without a beat."""

    def __init__(self, cluster: Cluster, lease_s: float) -> None:
        self._cluster = cluster
        self.pulses = Pulses(lease_s)
        self._alive: set[str] = set()
        self._gone: set[str] = set()
        self._lost: set[str] = set()  # of those that are gone
        self._draining: set[str] = set()

    @property
    def agents(self) -> Mapping[str, Agent]:
        return self._cluster.agents

    def plan_join(self, spec: AgentSpec, now: Now) -> AgentJoined | None:
        """The event that lets a host in; None when this very process is in already."""
        known = self.agents.get(spec.agent_id)
        if known is not None and known.alive and known.incarnation == spec.incarnation:
            return None
        return AgentJoined(**shared(AgentJoined, spec), at=now.wall)

    def plan_loss(self, agent_id: str, reason: str, now: Now, *, left: bool = False) -> AgentLost | None:
        known = self.agents.get(agent_id)
        if known is None or not known.alive:
            return None
        return AgentLost(agent_id=agent_id, reason=reason, left=left, at=now.wall)

    def find(self, host: str) -> Agent:
        """By its id, or by the name of its host."""
        if host in self.agents:
            return self.agents[host]
        named = [agent for agent in self.agents.values() if agent.hostname == host and agent.alive]
        known = ", ".join(sorted(agent.agent_id for agent in named or self.agents.values() if agent.alive)[:10])
        if not named:
            raise NotFound(f"no host {host[:80]!r} is known", hint=f"Known: {known or 'none'}.")
        if len(named) > 1:
            raise Conflict(f"host {host[:80]!r} has {len(named)} agents", hint=f"Name one of them: {known}.")
        return named[0]

    def plan_drain(
        self, agent_id: str, reason: str, deadline: float | None, now: Now, *, noticed: bool
    ) -> AgentDraining | None:
        """The host goes away, as somebody decided, or because its agent has noticed it. A decision outlives what an
        agent says; of two deadlines the earlier holds."""
        known = self.agents[agent_id]
        check_text("reason", reason, _MAX_REASON)
        if deadline is not None and not (math.isfinite(deadline) and deadline > 0):
            raise InvalidArgument(f"deadline is {deadline}, it must be a time in Unix seconds")
        if noticed and known.draining and not known.noticed:
            reason, noticed = known.draining, False
        deadline = min((at for at in (deadline, known.deadline) if at is not None), default=None)
        if (known.draining, known.deadline, known.noticed) == (reason, deadline, noticed):
            return None
        return AgentDraining(agent_id=agent_id, reason=reason, deadline=deadline, noticed=noticed, at=now.wall)

    def plan_stay(self, agent_id: str, now: Now, *, noticed: bool) -> AgentDraining | None:
        """The host stays after all. An agent takes back only what it said itself, and nobody else does."""
        known = self.agents[agent_id]
        if not known.draining or (noticed and not known.noticed):
            return None
        if known.noticed and not noticed:
            raise Conflict(
                f"agent {agent_id} has said itself that its host goes away: {known.draining}",
                hint="It stays when what it noticed is over, or when its agent is started anew.",
            )
        return AgentDraining(agent_id=agent_id, reason="", deadline=None, noticed=False, at=now.wall)

    def plan_expiry(self, now: Now) -> list[AgentLost]:
        """Agents whose lease ran out. Those who are late become suspect."""
        expired = self.pulses.look(self.alive, now)
        return [AgentLost(agent_id=name, reason=reason, left=False, at=now.wall) for name, reason in expired.items()]

    def gone_with(self, membership: Membership, now: Now) -> dict[str, str]:
        """Workers that beat by themselves until their agent was lost, and not since then, each with the reason. Those
        whose own connections have ended with those of their agent are known at once: nothing runs there any more.
        Only such workers of agents that are away are looked at."""
        hosts, pulses = membership.hosts, membership.pulses
        found: dict[str, str] = {}
        for worker_id in [worker_id for worker_id in pulses.cut if worker_id in pulses.suspects]:
            agent_id = membership.workers[worker_id].agent_id
            if agent_id in self.pulses.suspects and now.monotonic - pulses.cut[worker_id] > _RETURN_S:
                found[worker_id] = f"its connections have ended, and so have those of agent {agent_id}"
        for agent_id in sorted(hosts.keys() & self._lost):
            for worker_id in [worker_id for worker_id in hosts[agent_id] if worker_id in pulses.speaking]:
                silent_s = pulses.silent_s(worker_id, now)
                if silent_s > self.pulses.lease_s * _GONE_WITH and worker_id not in found:
                    found[worker_id] = f"its agent {agent_id} is lost, and it is silent for {silent_s:.1f} s"
        return found

    def took(self, agent_id: str, worker: Worker | None, incarnation: str, *, attached: bool) -> bool:
        """Whether a rank went with its host: it is not there, and its agent is lost; or that is only away, and the rank
        was there before it was lost."""
        is_rank = worker is not None and worker.incarnation == incarnation
        if worker is not None and is_rank and worker.alive:
            return False
        agent = self.agents.get(agent_id)
        if agent is None or not agent.alive:
            return True
        return not attached and worker is not None and is_rank and worker.state is MemberState.LOST

    def alive(self) -> list[str]:
        return sorted(self._alive)

    def dead(self, names: Set[str]) -> Set[str]:
        """Those of these hosts whose agents are lost or have left."""
        return names & self._gone

    def draining(self, names: Set[str]) -> list[Agent]:
        """Those of these hosts that go away, in their order."""
        going = names & self._draining
        return [self.agents[name] for name in names if name in going] if going else []

    def beat(self, agent_id: str, report: object, now: Now) -> None:
        """Renews the lease. One that was declared lost must attach again: its host's work was given away."""
        agent = self.agents[agent_id]
        if not agent.alive:
            raise Fenced(f"fenced: agent {agent_id} was declared {agent.state}: {agent.reason}", hint="Attach again.")
        self.pulses.beat(agent_id, report, now)

    def suspect(self, agent_id: str) -> None:
        """Marks an agent whose stream broke as suspect."""
        if self.agents[agent_id].alive:
            self.pulses.suspect(agent_id)

    # --- evolving

    def on_changed(self, agent_id: str) -> None:
        """Told when the cluster's record of an agent has changed: what is asked of all agents, several times a second,
        is known without a look at each."""
        agent = self.agents.get(agent_id)
        if agent is None:
            return
        for holds, names in (
            (agent.alive, self._alive),
            (not agent.alive, self._gone),
            (agent.state is MemberState.LOST, self._lost),
            (bool(agent.draining), self._draining),
        ):
            if holds:
                names.add(agent_id)
            else:
                names.discard(agent_id)

    def load(self, now: Now) -> None:
        """The records must be loaded before."""
        for agent_id in self.agents:
            self.pulses.start(agent_id, now)
            self.on_changed(agent_id)

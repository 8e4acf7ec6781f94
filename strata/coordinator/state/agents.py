"""Agents: one per host, with slots for ranks. An agent's death says nothing about its workers, which have leases of
their own; it only means that nothing can be started or stopped there.
"""

from dataclasses import dataclass
from typing import Any

from strata.cluster.events import AgentJoined, AgentLost
from strata.coordinator.state.membership import trusting
from strata.coordinator.state.now import Now
from strata.errors import Fenced
from strata.types.workers import AgentSpec, MemberState

__all__ = ["Agent", "Agents"]

_SUSPECT_AFTER = 0.6


@dataclass(slots=True, kw_only=True)
class Agent:
    """One host's agent; the last two fields are volatile."""

    agent_id: str
    incarnation: str
    hostname: str
    address: str
    slots: int
    gpu_count: int
    memory_bytes: int
    version: str
    joined_at: float
    launcher: str = "local"
    state: MemberState = MemberState.READY
    reason: str = ""
    seen_at: float = 0.0
    report: object | None = None


class Agents:
    """All agents. `lease_s` is how long one lives without a beat."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.agents: dict[str, Agent] = {}

    def plan_join(self, spec: AgentSpec, now: Now) -> AgentJoined | None:
        """The event that lets a host in; None when this very process is in already."""
        known = self.agents.get(spec.agent_id)
        if known is not None and known.state.alive and known.incarnation == spec.incarnation:
            known.seen_at = now.monotonic
            known.state = MemberState.READY
            return None
        return AgentJoined(
            agent_id=spec.agent_id,
            incarnation=spec.incarnation,
            hostname=spec.hostname,
            address=spec.address,
            slots=spec.slots,
            gpu_count=spec.gpu_count,
            memory_bytes=spec.memory_bytes,
            version=spec.version,
            launcher=spec.launcher,
            at=now.wall,
        )

    def plan_loss(self, agent_id: str, reason: str, now: Now, *, left: bool = False) -> AgentLost | None:
        known = self.agents.get(agent_id)
        if known is None or not known.state.alive:
            return None
        return AgentLost(agent_id=agent_id, reason=reason, left=left, at=now.wall)

    def plan_expiry(self, now: Now) -> list[AgentLost]:
        """Agents whose lease ran out. Marks those that are late as suspect."""
        lost: list[AgentLost] = []
        for agent in self.agents.values():
            silent = now.monotonic - agent.seen_at
            if not agent.state.alive:
                continue
            if silent > self.lease_s:
                reason = f"no beat for {silent:.1f} s (timeout {self.lease_s:g} s)"
                lost.append(AgentLost(agent_id=agent.agent_id, reason=reason, left=False, at=now.wall))
            elif silent > self.lease_s * _SUSPECT_AFTER:
                agent.state = MemberState.SUSPECT
        return lost

    def beat(self, agent_id: str, report: object, now: Now) -> None:
        """Renews the lease. One that was declared lost must attach again: its host's work was given away."""
        agent = self.agents[agent_id]
        if not agent.state.alive:
            raise Fenced(f"fenced: agent {agent_id} was declared {agent.state}: {agent.reason}", hint="Attach again.")
        agent.seen_at = now.monotonic
        agent.report = report
        if agent.state is MemberState.SUSPECT:
            agent.state = MemberState.READY

    def suspect(self, agent_id: str) -> None:
        """Its stream broke: worth a look, not yet a death."""
        agent = self.agents[agent_id]
        if agent.state is MemberState.READY:
            agent.state = MemberState.SUSPECT

    def renew_all(self, now: Now) -> None:
        for agent in self.agents.values():
            agent.seen_at = now.monotonic

    def on_joined(self, event: AgentJoined, now: Now) -> None:
        self.agents[event.agent_id] = Agent(
            agent_id=event.agent_id,
            incarnation=event.incarnation,
            hostname=event.hostname,
            address=event.address,
            slots=event.slots,
            gpu_count=event.gpu_count,
            memory_bytes=event.memory_bytes,
            version=event.version,
            joined_at=event.at,
            launcher=event.launcher,
            seen_at=now.monotonic,
        )

    def on_lost(self, event: AgentLost) -> None:
        agent = self.agents[event.agent_id]
        agent.state = MemberState.LEFT if event.left else MemberState.LOST
        agent.reason = event.reason

    def dump(self) -> list[dict[str, Any]]:
        volatile = ("seen_at", "report")
        return [
            {
                **{name: getattr(agent, name) for name in Agent.__slots__ if name not in volatile},
                "state": trusting(agent.state),
            }
            for agent in self.agents.values()
        ]

    def load(self, dumped: list[dict[str, Any]], now: Now) -> None:
        for values in dumped:
            agent = Agent(**{**values, "state": MemberState(values["state"]), "seen_at": now.monotonic})
            self.agents[agent.agent_id] = agent

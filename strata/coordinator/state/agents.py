"""Agents: one per host, with slots for ranks. An agent's death says nothing about its workers, which have leases of
their own; it only means that nothing can be started or stopped there.
"""

from collections.abc import Mapping

from strata.cluster.events import AgentJoined, AgentLost
from strata.cluster.members import Agent
from strata.cluster.model import Cluster
from strata.cluster.plain import shared
from strata.coordinator.state.now import Now
from strata.coordinator.state.pulses import Pulses
from strata.errors import Fenced
from strata.types.workers import AgentSpec

__all__ = ["Agents"]


class Agents:
    """All agents, by the cluster's records. `lease_s` is how long one lives without a beat."""

    def __init__(self, cluster: Cluster, lease_s: float) -> None:
        self._cluster = cluster
        self.pulses = Pulses(lease_s)

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

    def plan_expiry(self, now: Now) -> list[AgentLost]:
        """Agents whose lease ran out."""
        expired = self.pulses.expired(self.alive(), now)
        return [AgentLost(agent_id=name, reason=reason, left=False, at=now.wall) for name, reason in expired.items()]

    def alive(self) -> list[str]:
        return [agent.agent_id for agent in self.agents.values() if agent.alive]

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

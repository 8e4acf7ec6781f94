"""Tokens for others: which may be made, and which can be revoked."""

from strata.cluster import events as e
from strata.cluster.model import Cluster
from strata.coordinator.state import commands as c
from strata.coordinator.state.now import Now
from strata.errors import Conflict, NotFound, Refused
from strata.types.tokens import MAX_TOKENS, TokenRecord

__all__ = ["Tokens"]


class Tokens:
    """Decides; the cluster's records hold the tokens."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.records = cluster.tokens.records

    def make(self, command: c.MakeToken, now: Now, emit: c.Emit) -> TokenRecord:
        token = command.token
        if token.token_id in self.records:
            raise Conflict(f"there is a token {token.token_id} already")
        if sum(not known.fault(now.wall) for known in self.records.values()) >= MAX_TOKENS:
            raise Refused(f"there are {MAX_TOKENS:,} tokens", hint="`strata token list` shows them; revoke some.")
        agent = self._cluster.agents.get(token.agent_id) if token.agent_id else None
        if agent is not None and agent.alive:
            raise Conflict(
                f"agent {token.agent_id} is attached already",
                hint="Each agent needs a --data-dir of its own; one that is gone is forgotten after a few seconds.",
            )
        emit(
            e.TokenMade(
                token_id=token.token_id,
                role=token.role.value,
                digest=token.digest,
                expires_at=token.expires_at,
                agent_id=token.agent_id,
                note=token.note,
                at=now.wall,
            )
        )
        return self.records[token.token_id]

    def revoke(self, command: c.RevokeToken, now: Now, emit: c.Emit) -> TokenRecord:
        known = self.records.get(command.token_id)
        if known is None:
            raise NotFound(f"there is no token {command.token_id[:40]!r}", hint="`strata token list` shows them.")
        if known.revoked_at is None:
            emit(e.TokenRevoked(token_id=known.token_id, at=now.wall))
        return self.records[known.token_id]

"""Tokens: made for others, and revoked."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = ["TokenMade", "TokenRevoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMade(Event):
    """Somebody may come in. `digest` is the hash of the secret. An agent's credential takes the place of its last."""

    token_id: str
    role: str
    digest: str
    expires_at: float | None
    agent_id: str
    note: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRevoked(Event):
    """It is no good any more, from now on."""

    token_id: str
    at: float

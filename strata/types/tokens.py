"""Tokens for others: a host that joins, somebody who looks, somebody who works from afar. What is kept is the hash of
the secret, never the secret.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from strata.errors import InvalidArgument

__all__ = ["MAX_TOKENS", "Role", "TokenRecord", "digest_of"]

MAX_TOKENS = 10_000
_MAX_NOTE = 200


class Role(StrEnum):
    """AGENT joins a host and serves as its agent; VIEWER reads; OPERATOR does all that the owner may, except making
    tokens."""

    AGENT = "agent"
    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """One token. `expires_at` is None for one that lasts until it is revoked. `agent_id` is of an agent's own
    credential, for which it has exchanged a join token: it is good for that agent alone."""

    token_id: str
    role: Role
    digest: str
    made_at: float
    expires_at: float | None = None
    agent_id: str = ""
    note: str = ""
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        if not (self.token_id.isascii() and self.token_id.isalnum() and len(self.token_id) <= 32):
            raise InvalidArgument(f"{self.token_id[:40]!r} is no id of a token")
        if len(self.note) > _MAX_NOTE:
            raise InvalidArgument(f"a note has {len(self.note)} characters, at most {_MAX_NOTE} are kept")

    def fault(self, now: float) -> str:
        """Why it is no good any more; empty while it is."""
        if self.revoked_at is not None:
            return f"token {self.token_id} was revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return f"token {self.token_id} has expired"
        return ""


def digest_of(secret: str) -> str:
    """The secret is random and long: a plain hash tells nothing about it."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()

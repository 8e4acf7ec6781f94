"""What a caller can present: the cluster's token, or the secret of a task's attempt. Both are compared in constant
time.

The secret of an attempt is a MAC under the cluster's token: coordinator and observatory can both check it after any
restart, and nobody stores it.
"""

import hashlib
import hmac

from strata.trust.peer import Peer
from strata.trust.who import OWNER, STRANGER, Visitor, Who

__all__ = ["SECRET_METADATA", "SECRET_VARIABLE", "Proofs"]

# Where a rank finds the secret of its attempt, and where it shows it. Names, no secrets.
SECRET_VARIABLE = "STRATA_RANK_SECRET"  # noqa: S105
SECRET_METADATA = "strata-rank-secret"  # noqa: S105


class Proofs:
    """Checks what callers present against the cluster's token. Without a token nothing passes."""

    def __init__(self, token: str | None) -> None:
        self._token = (token or "").encode()

    def is_token(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(), self._token)

    def recognise(self, peer: Peer | None, token: str = "", secret: str = "") -> Visitor:
        """The best that the caller can be. `peer` is None when its connection proves nothing."""
        if (token and self.is_token(token)) or (peer is not None and peer.owns):
            return OWNER
        return (self.read_secret(secret) if secret else None) or STRANGER

    def mint_secret(self, task_id: str, attempt: int) -> str:
        """For the ranks of one attempt: `<task>.<attempt>.<mac>`."""
        return f"{task_id}.{attempt}.{self.sign('rank', task_id, str(attempt))}"

    def read_secret(self, secret: str) -> Visitor | None:
        """The task and attempt that a secret belongs to, or None when it is not genuine."""
        task_id, attempt, _ = (*secret.rsplit(".", 2), "", "")[:3]
        if not (self._token and attempt.isdecimal() and len(attempt) < 10):
            return None
        if not hmac.compare_digest(secret.encode(), self.mint_secret(task_id, int(attempt)).encode()):
            return None
        return Visitor(Who.RANK, task_id, int(attempt))

    def is_signed(self, mac: str, *words: str) -> bool:
        return bool(self._token) and hmac.compare_digest(mac.encode(), self.sign(*words).encode())

    def sign(self, *words: str) -> str:
        """A MAC of these words, in this order."""
        message = "\0".join(words).encode()
        return hmac.new(self._token, message, hashlib.sha256).hexdigest()

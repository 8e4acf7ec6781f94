"""What a caller can present: the cluster's token, a token that was made for it, or the secret of a task's attempt. All
are compared in constant time.

The secret of an attempt is a MAC under the cluster's token: coordinator and observatory can both check it after any
restart, and nobody stores it.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping

from strata.trust.peer import Peer
from strata.trust.who import OWNER, STRANGER, Visitor, Who
from strata.types.tokens import TokenRecord, digest_of

__all__ = ["SECRET_METADATA", "SECRET_VARIABLE", "Proofs"]

# Where a rank finds the secret of its attempt, and where it shows it. Names, no secrets.
SECRET_VARIABLE = "STRATA_RANK_SECRET"  # noqa: S105
SECRET_METADATA = "strata-rank-secret"  # noqa: S105


class Proofs:
    """Checks what callers present against the cluster's token, and against what `made` gives, the tokens for others by
    their id. Without a token of the cluster nothing passes."""

    def __init__(self, token: str | None, made: Callable[[], Mapping[str, TokenRecord]] = dict) -> None:
        self._token = (token or "").encode()
        self._made = made

    def is_token(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(errors="surrogatepass"), self._token)

    def recognise(self, peer: Peer | None, token: str = "", secret: str = "") -> Visitor:
        """The best that the caller can be. `peer` is None when its connection proves nothing."""
        if (token and self.is_token(token)) or (peer is not None and peer.owns):
            return OWNER
        known = self.read_token(token) if token else STRANGER
        return (self.read_secret(secret) if secret and known.who is Who.STRANGER else None) or known

    def read_token(self, text: str) -> Visitor:
        """Who holds a token that was made here: `<id>.<secret>`, with or without the fingerprint behind it. Only who
        has the right secret is told what is wrong with it."""
        token_id, _, rest = text.partition(".")
        found = self._made().get(token_id) if self._token else None
        given = digest_of(rest.partition(".")[0])
        if not hmac.compare_digest(found.digest if found else "", given) or found is None:
            return STRANGER
        return self.visitor_of(found)

    def visitor_of(self, token: TokenRecord) -> Visitor:
        """Its holder now; a stranger when it is no good any more."""
        fault = token.fault(time.time())
        if fault:
            return Visitor(Who.STRANGER, fault=fault)
        return Visitor(Who(token.role.value), token_id=token.token_id, agent_id=token.agent_id)

    def holder(self, token_id: str) -> Visitor:
        """Of a token that was shown before."""
        found = self._made().get(token_id)
        return self.visitor_of(found) if found else Visitor(Who.STRANGER, fault=f"token {token_id} was revoked")

    def mint_secret(self, task_id: str, attempt: int) -> str:
        """For the ranks of one attempt: `<task>.<attempt>.<mac>`."""
        return f"{task_id}.{attempt}.{self.sign('rank', task_id, str(attempt))}"

    def read_secret(self, secret: str) -> Visitor | None:
        """The task and attempt that a secret belongs to, or None when it is not genuine."""
        task_id, attempt, _ = (*secret.rsplit(".", 2), "", "")[:3]
        if not (self._token and attempt.isdecimal() and len(attempt) < 10):
            return None
        if not hmac.compare_digest(
            secret.encode(errors="surrogatepass"), self.mint_secret(task_id, int(attempt)).encode()
        ):
            return None
        return Visitor(Who.RANK, task_id, int(attempt))

    def is_signed(self, mac: str, *words: str) -> bool:
        return bool(self._token) and hmac.compare_digest(mac.encode(), self.sign(*words).encode())

    def sign(self, *words: str) -> str:
        """A MAC of these words, in this order."""
        message = "\0".join(words).encode()
        return hmac.new(self._token, message, hashlib.sha256).hexdigest()

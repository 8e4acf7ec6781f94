"""The door of a coordinator that others can reach: every call, streams and health included, needs the token."""

import asyncio
import hmac

from strata.errors import Unauthenticated
from strata.grpcserver.call import Refusal
from strata.grpcserver.connection import Check
from strata.grpcserver.headers import Metadata
from strata.protocol.status import to_status, to_trailers

__all__ = ["TokenGate"]


class TokenGate:
    """Lets a call through when its bearer token is right, else ends it before its handler sees it."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        error = Unauthenticated("this coordinator needs the cluster's token")
        self._refusal = Refusal(to_status(error), error.message, to_trailers(error))

    def __call__(self, transport: asyncio.Transport) -> Check:
        return self._check

    def _check(self, path: str, metadata: Metadata) -> Refusal | None:
        given = dict(metadata).get("authorization", "")
        return None if hmac.compare_digest(str(given).encode(), self._expected) else self._refusal

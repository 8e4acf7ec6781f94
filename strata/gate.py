"""The door of our gRPC servers: who calls is found out once per connection and kind of metadata, what they may is asked
of the table before a call's method is looked up.
"""

import asyncio

import grpc

from strata.errors import StrataError
from strata.grpcserver.call import Refusal
from strata.grpcserver.connection import Check
from strata.grpcserver.headers import Metadata
from strata.protocol.status import to_status, to_text, to_trailers
from strata.trust.peer import Peer
from strata.trust.proofs import SECRET_METADATA, Proofs
from strata.trust.table import TABLE, Admission, admit
from strata.trust.who import Who

__all__ = ["Gate"]

_REMEMBERED = 64  # verdicts per connection


class Gate:
    """Gives every connection its check."""

    def __init__(self, proofs: Proofs) -> None:
        self._proofs = proofs

    def __call__(self, transport: asyncio.Transport) -> Check:
        return _Visit(Peer.of(transport), self._proofs).check


class _Visit:
    """One connection. A client repeats its metadata, so a verdict is looked up far more often than it is made."""

    __slots__ = ("_known", "_peer", "_proofs")

    def __init__(self, peer: Peer, proofs: Proofs) -> None:
        self._peer = peer
        self._proofs = proofs
        self._known: dict[tuple[str, Metadata], Admission | Refusal] = {}

    def check(self, path: str, metadata: Metadata) -> Admission | Refusal:
        known = self._known.get((path, metadata))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[path, metadata] = self._decide(path, metadata)
        return known

    def _decide(self, path: str, metadata: Metadata) -> Admission | Refusal:
        given = {name: value for name, value in metadata if isinstance(value, str)}
        token = given.get("authorization", "").removeprefix("Bearer ")
        visitor = self._proofs.recognise(self._peer, token, given.get(SECRET_METADATA, ""))
        if path not in TABLE and visitor.who is not Who.STRANGER:
            return Refusal(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {path}")
        answer = admit(path, visitor)
        if isinstance(answer, StrataError):
            return Refusal(to_status(answer), to_text(answer), to_trailers(answer))
        return answer

"""Admits calls to our gRPC servers. The caller is identified once per connection and kind of metadata; then the table
of rights decides, before the method is even looked up.
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
    """Makes the check for a new connection."""

    def __init__(self, proofs: Proofs) -> None:
        self._proofs = proofs

    def __call__(self, transport: asyncio.Transport) -> Check:
        return _Visit(Peer.of(transport), self._proofs).check


class _Visit:
    """The check of one connection. A client repeats its metadata, so verdicts are remembered."""

    __slots__ = ("_known", "_peer", "_proofs")

    def __init__(self, peer: Peer, proofs: Proofs) -> None:
        self._peer = peer
        self._proofs = proofs
        self._known: dict[tuple[str, Metadata], Admission] = {}

    def check(self, path: str, metadata: Metadata) -> Admission | Refusal:
        known = self._known.get((path, metadata))
        if known is not None:
            return known
        verdict = self._decide(path, metadata)
        if isinstance(verdict, Admission) and not verdict.visitor.token_id:  # a token may end at any time
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path, metadata] = verdict
        return verdict

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

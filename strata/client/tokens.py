"""Tokens for others at the coordinator: made, listed, revoked."""

import json
from typing import Any

from strata.client.channel import Channel
from strata.protocol.generated import trust_pb2 as tr
from strata.protocol.generated.trust_pb2_grpc import TrustStub

__all__ = ["TokensClient"]


class TokensClient:
    """The owner's calls."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(TrustStub)

    def create(self, role: str, ttl_s: float | None, note: str = "") -> str:
        """`<token>@host:port`: shown once, kept nowhere."""
        request = tr.CreateTokenRequest(role=role, ttl_s=ttl_s, note=note)
        made: tr.CreateTokenReply = self._channel.call(self._stub.CreateToken, request)
        return f"{made.token}@{made.address}"

    def list(self) -> "list[dict[str, Any]]":
        found: tr.TokenList = self._channel.call(self._stub.ListTokens, tr.ListTokensRequest())
        records: list[dict[str, Any]] = json.loads(found.records_json)
        return records

    def revoke(self, token_id: str) -> None:
        self._channel.call(self._stub.RevokeToken, tr.RevokeTokenRequest(token_id=token_id))

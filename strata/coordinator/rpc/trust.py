"""How others get in: the CA, joining with a token, and making, listing and revoking tokens."""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.answer import Context, answered
from strata.coordinator.state import commands as c
from strata.errors import InvalidArgument
from strata.protocol.generated import trust_pb2 as tr
from strata.protocol.generated import trust_pb2_grpc as tr_grpc
from strata.trust.identity import fingerprint_of
from strata.trust.table import Admission
from strata.trust.who import Who
from strata.types.plain import to_plain
from strata.types.shown import check_text
from strata.types.tokens import Role, TokenRecord, digest_of

__all__ = ["Surroundings", "TrustService"]

_MAX_TTL_S = 10 * 366 * 86_400.0
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What those who join must know. `anchor` is the CA's certificate, empty where no TLS is spoken; `observatory`
    tells where it listens: the page's URL and the address for telemetry, each empty when it is not known."""

    anchor: str
    address: Callable[[], str]
    observatory: Callable[[], tuple[str, str]]


class TrustService(tr_grpc.TrustServicer):
    """Implements `strata.trust.Trust`."""

    def __init__(self, coordinator: Coordinator, around: Surroundings) -> None:
        self._coordinator = coordinator
        self._around = around
        self.check = coordinator.check_steady
        self.meter = coordinator.meter
        self.tasks = coordinator.state.tasks

    @answered
    async def GetAuthority(self, request: tr.AuthorityRequest, context: Context) -> tr.Authority:
        return tr.Authority(certificate=self._around.anchor)

    @answered
    async def Join(self, request: tr.JoinRequest, context: Context) -> tr.JoinReply:
        admission = context.caller
        assert isinstance(admission, Admission)
        visitor = admission.visitor
        http, telemetry = self._around.observatory()
        reply = tr.JoinReply(role=visitor.who.value, http=http, telemetry=telemetry)
        if request.agent_id and visitor.who in (Who.AGENT, Who.OPERATOR, Who.OWNER):
            agent_id = check_text("agent_id", request.agent_id, _MAX_NAME)
            note = f"agent of {check_text('hostname', request.hostname, _MAX_NAME)}, joined with {visitor.token_id}"
            reply.credential = (await self._make(Role.AGENT, None, note[:_MAX_NAME], agent_id))[1]
        return reply

    @answered
    async def CreateToken(self, request: tr.CreateTokenRequest, context: Context) -> tr.CreateTokenReply:
        ttl_s = request.ttl_s if request.HasField("ttl_s") else None
        if ttl_s is not None and not 0 < ttl_s <= _MAX_TTL_S:
            raise InvalidArgument(
                f"a token cannot last {ttl_s:g} s", hint="Between a second and ten years, or no limit."
            )
        if request.role not in set(Role):
            raise InvalidArgument(f"there is no role {request.role[:40]!r}", hint=f"Roles: {', '.join(Role)}.")
        note = check_text("note", request.note, _MAX_NAME)
        token_id, text = await self._make(Role(request.role), ttl_s, note)
        anchor = self._around.anchor
        token = f"{text}.{fingerprint_of(anchor)}" if anchor else text
        return tr.CreateTokenReply(token_id=token_id, token=token, address=self._around.address())

    @answered
    async def ListTokens(self, request: tr.ListTokensRequest, context: Context) -> tr.TokenList:
        records = [to_plain(token) for token in self._coordinator.state.cluster.tokens.records.values()]
        shown = [{name: value for name, value in record.items() if name != "digest"} for record in records]
        await self._coordinator.settled()
        return tr.TokenList(records_json=json.dumps(shown).encode())

    @answered
    async def RevokeToken(self, request: tr.RevokeTokenRequest, context: Context) -> tr.RevokeTokenReply:
        token = await self._coordinator.ask(c.RevokeToken(token_id=request.token_id))
        return tr.RevokeTokenReply(token_id=token.token_id)

    async def _make(self, role: Role, ttl_s: float | None, note: str, agent_id: str = "") -> tuple[str, str]:
        """The new token's id, and what its holder shows."""
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
        now = time.time()
        token = TokenRecord(
            token_id=token_id,
            role=role,
            digest=digest_of(secret),
            made_at=now,
            expires_at=now + ttl_s if ttl_s is not None else None,
            agent_id=agent_id,
            note=note,
        )
        await self._coordinator.ask(c.MakeToken(token=token))
        return token_id, f"{token_id}.{secret}"

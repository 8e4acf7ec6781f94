"""Tokens as records: those that are good, and for a while those that are not any more."""

from dataclasses import replace

from strata.cluster.events import Event, TokenMade, TokenRevoked
from strata.types.plain import shared
from strata.types.tokens import Role, TokenRecord

__all__ = ["KEEP_FAULTY_S", "TokenRecords"]

KEEP_FAULTY_S = 7 * 86_400.0  # so long its holder is told why it is refused


class TokenRecords:
    """By id, the oldest first."""

    def __init__(self) -> None:
        self.records: dict[str, TokenRecord] = {}

    def evolve(self, event: Event) -> None:
        match event:
            case TokenMade():
                self._make(event)
            case TokenRevoked():
                known = self.records.get(event.token_id)
                if known is not None:
                    self.records[event.token_id] = replace(known, revoked_at=event.at)
            case _:
                pass

    def _make(self, event: TokenMade) -> None:
        for known in list(self.records.values()):
            ended = known.revoked_at if known.revoked_at is not None else known.expires_at
            replaced = event.agent_id and known.agent_id == event.agent_id
            if replaced or (ended is not None and event.at - ended > KEEP_FAULTY_S):
                del self.records[known.token_id]
        values = {**shared(TokenRecord, event), "role": Role(event.role)}
        self.records[event.token_id] = TokenRecord(**values, made_at=event.at)

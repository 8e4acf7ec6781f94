"""Tokens in the state: made once, replaced by an agent's next, forgotten a while after their end, the same after a
replay."""

import pytest

from strata.cluster.tokens import KEEP_FAULTY_S
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.now import Now
from strata.errors import Conflict, NotFound
from strata.types.tokens import Role, TokenRecord
from strata.types.workers import AgentSpec

_SPEC = AgentSpec(agent_id="host-1", incarnation="i", hostname="h", address="10.0.0.2", slots=1)


def _make(state: ClusterState, token_id: str, at: float = 0.0, **values: object) -> TokenRecord:
    token = TokenRecord(token_id=token_id, role=Role.AGENT, digest="d", made_at=at, **values)  # type: ignore[arg-type]
    return state.apply(c.MakeToken(token=token), Now(monotonic=at, wall=at)).reply


def test_a_token_is_made_once_and_revoked_for_good() -> None:
    state = ClusterState(StateConfig())
    _make(state, "a", note="for b")
    with pytest.raises(Conflict):
        _make(state, "a")
    revoked = state.apply(c.RevokeToken(token_id="a"), Now(monotonic=5.0, wall=5.0))
    assert revoked.reply.fault(5.0) == "token a was revoked"
    assert state.apply(c.RevokeToken(token_id="a"), Now(monotonic=6.0, wall=6.0)).events == []
    with pytest.raises(NotFound):
        state.apply(c.RevokeToken(token_id="none"), Now(monotonic=6.0, wall=6.0))


def test_an_agent_s_next_credential_takes_the_place_of_its_last_unless_it_is_there() -> None:
    state = ClusterState(StateConfig())
    _make(state, "a", agent_id="host-1")
    _make(state, "b", agent_id="host-1")
    assert list(state.cluster.tokens.records) == ["b"]
    state.apply(c.AttachAgent(spec=_SPEC), Now(monotonic=1.0, wall=1.0))
    with pytest.raises(Conflict, match="attached already"):
        _make(state, "c", agent_id="host-1")


def test_what_has_ended_is_forgotten_after_a_while() -> None:
    state = ClusterState(StateConfig())
    _make(state, "short", expires_at=10.0)
    _make(state, "next", at=11.0)
    assert set(state.cluster.tokens.records) == {"short", "next"}
    _make(state, "later", at=11.0 + KEEP_FAULTY_S)
    assert set(state.cluster.tokens.records) == {"next", "later"}


def test_a_dump_holds_them() -> None:
    state, again = ClusterState(StateConfig()), ClusterState(StateConfig())
    _make(state, "a", expires_at=10.0, note="n")
    again.load(state.dump(), Now(monotonic=0.0, wall=0.0))
    assert again.cluster.tokens.records == state.cluster.tokens.records

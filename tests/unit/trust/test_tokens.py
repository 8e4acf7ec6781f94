"""Tokens for others: known by their secret alone, good until they end, each with its rights."""

import time

import pytest

from strata.errors import InvalidArgument, PermissionDenied, Unauthenticated
from strata.trust.proofs import Proofs
from strata.trust.table import TABLE, Admission, admit
from strata.trust.who import OWNER, STRANGER, Visitor, Who
from strata.types.tokens import Role, TokenRecord, digest_of


def _token(token_id: str, role: Role, **values: object) -> TokenRecord:
    return TokenRecord(token_id=token_id, role=role, digest=digest_of(f"secret-of-{token_id}"), made_at=0.0, **values)  # type: ignore[arg-type]


_MADE = {
    "a1": _token("a1", Role.AGENT, agent_id="host-1"),
    "v1": _token("v1", Role.VIEWER),
    "o1": _token("o1", Role.OPERATOR, expires_at=time.time() + 1e6),
    "x1": _token("x1", Role.OPERATOR, expires_at=1.0),
    "r1": _token("r1", Role.OPERATOR, revoked_at=1.0),
}
_PROOFS = Proofs("cluster", lambda: _MADE)


@pytest.mark.parametrize(
    ("shown", "who"),
    [
        ("a1.secret-of-a1", Visitor(Who.AGENT, token_id="a1", agent_id="host-1")),
        ("v1.secret-of-v1", Visitor(Who.VIEWER, token_id="v1")),
        ("o1.secret-of-o1.fingerprint", Visitor(Who.OPERATOR, token_id="o1")),
        ("cluster", OWNER),
        ("v1.secret-of-a1", STRANGER),
        ("v1.", STRANGER),
        ("v1", STRANGER),
        (".secret-of-v1", STRANGER),
        ("none.secret", STRANGER),
        ("v1.\udc80", STRANGER),
    ],
)
def test_who_holds_it(shown: str, who: Visitor) -> None:
    assert _PROOFS.recognise(None, shown) == who


@pytest.mark.parametrize(("token_id", "told"), [("x1", "token x1 has expired"), ("r1", "token r1 was revoked")])
def test_its_holder_is_told_why_it_is_no_good_and_nobody_else_is(token_id: str, told: str) -> None:
    visitor = _PROOFS.recognise(None, f"{token_id}.secret-of-{token_id}")
    refused = admit("GET /api/tasks", visitor)
    assert isinstance(refused, Unauthenticated)
    assert refused.message == told
    assert "strata token create" in refused.hint
    guess = admit("GET /api/tasks", _PROOFS.recognise(None, f"{token_id}.guessed"))
    assert isinstance(guess, Unauthenticated)
    assert token_id not in guess.message


def test_without_a_token_of_the_cluster_nobody_comes_in() -> None:
    assert Proofs(None, lambda: _MADE).recognise(None, "v1.secret-of-v1") is STRANGER


def test_a_viewer_reads_and_sees_no_files_and_changes_nothing() -> None:
    viewer = Visitor(Who.VIEWER)
    allowed = {command for command in TABLE if isinstance(admit(command, viewer), Admission)}
    assert {"GET /api/tasks", "GET /api/stream", "GET /metrics", "/strata.control.Control/ListTasks"} <= allowed
    harmless = {"POST /api/session", "DELETE /api/session", "POST /api/sql"}  # its own session; a question that reads
    assert {command for command in allowed if command.startswith(("POST", "PATCH", "DELETE"))} == harmless
    for command in ("GET /api/datasets/{dataset_id}/preview", "/strata.control.Control/WatchState"):
        assert isinstance(admit(command, viewer), PermissionDenied), command


def test_an_operator_may_all_but_make_tokens_and_an_agent_serves_its_host_alone() -> None:
    made_of = {Who.OPERATOR: set[str](), Who.AGENT: set[str]()}
    for who, refused in made_of.items():
        refused |= {command for command in TABLE if not isinstance(admit(command, Visitor(who)), Admission)}
    assert made_of[Who.OPERATOR] == {
        f"/strata.trust.Trust/{verb}Token{s}" for verb, s in (("Create", ""), ("List", "s"), ("Revoke", ""))
    }
    served = {"/strata.agents.Agents/Attach", "/strata.telemetry.Telemetry/Report", "/strata.trust.Trust/Join"}
    assert not served & made_of[Who.AGENT]
    assert {"/strata.control.Control/SubmitTask", "GET /api/tasks", "/strata.control.Control/GetTask"} <= made_of[
        Who.AGENT
    ]


def test_a_refusal_is_a_sentence() -> None:
    refused = admit("/strata.trust.Trust/CreateToken", Visitor(Who.OPERATOR))
    assert isinstance(refused, PermissionDenied)
    assert refused.message == "/strata.trust.Trust/CreateToken is not for an operator"
    assert "ask on the first host" in refused.hint


def test_odd_ids_and_notes_are_refused() -> None:
    for wrong in ("", "a.b", "é", "x" * 33):
        with pytest.raises(InvalidArgument):
            _token(wrong, Role.AGENT)
    with pytest.raises(InvalidArgument, match="note"):
        _token("a", Role.AGENT, note="x" * 201)

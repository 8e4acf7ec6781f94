"""The REST door: whose request it is, and from whose page. The table of rights itself has tests of its own."""

import pytest
from starlette.datastructures import Headers

from strata.errors import InvalidArgument, PermissionDenied, Unauthenticated
from strata.observatory.http.auth import COOKIE, Guard
from strata.trust.peer import Peer

LOCAL = Guard(public=False, token="secret")
PUBLIC = Guard(public=True, token="secret")


class _Owner(Peer):
    """A connection of which the kernel says that it is ours."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self._owns = True


OWNER = _Owner()
READ, COSTLY, CHANGE = "GET /api/tasks", "GET /api/datasets/{dataset_id}/preview", "POST /api/tasks"


def check(guard: Guard, command: str, peer: Peer | None = None, **headers: str) -> None:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    guard.check(command, command.split()[0], Headers({"host": "localhost:3000", **given}), peer)


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "LOCALHOST"])
def test_loopback_names_are_served(host: str) -> None:
    check(LOCAL, READ, OWNER, host=host)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:3000", "", "10.0.0.1", "[", "[::1"])
def test_other_names_are_refused(host: str) -> None:
    with pytest.raises(PermissionDenied):
        check(LOCAL, "GET /{path:path}", OWNER, host=host)


def test_without_proof_there_is_the_page_and_health() -> None:
    for guard in (LOCAL, PUBLIC):
        check(guard, "GET /{path:path}")
        check(guard, "GET /api/health")
        for command in (READ, COSTLY, CHANGE, "GET /metrics"):
            with pytest.raises(Unauthenticated):
                check(guard, command)
            with pytest.raises(Unauthenticated):
                check(guard, command, authorization="Bearer wrong")
            check(guard, command, authorization="Bearer secret")
            check(guard, command, OWNER)


def test_on_a_public_address_the_kernel_s_word_is_for_our_own_names_only() -> None:
    """A page whose name was made to resolve to this machine is shown by the owner's browser, too."""
    check(PUBLIC, READ, OWNER)
    with pytest.raises(Unauthenticated):
        check(PUBLIC, READ, OWNER, host="rebound.example")
    check(PUBLIC, READ, None, host="head.example", authorization="Bearer secret")


@pytest.mark.parametrize("header", ["forwarded", "via", "x_forwarded_for", "x_real_ip"])
def test_behind_a_proxy_the_connection_proves_nothing(header: str) -> None:
    with pytest.raises(Unauthenticated):
        check(LOCAL, READ, OWNER, **{header: "10.0.0.7"})
    check(LOCAL, READ, OWNER, **{header: "10.0.0.7", "authorization": "Bearer secret"})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://[x"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_other_sites_get_nothing(headers: dict[str, str]) -> None:
    for command in (READ, COSTLY, CHANGE):
        with pytest.raises(PermissionDenied):
            check(LOCAL, command, OWNER, **headers)


def test_a_link_from_another_site_leads_to_the_page_and_starts_no_work() -> None:
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    check(LOCAL, "GET /{path:path}", OWNER, **link)
    check(LOCAL, READ, OWNER, **link)
    for command in (COSTLY, CHANGE, "GET /api/runs/{run_id}/export"):
        with pytest.raises(PermissionDenied):
            check(LOCAL, command, OWNER, **link)


@pytest.mark.parametrize("command", [CHANGE, "PATCH /api/runs/{run_id}", "POST /api/session"])
def test_a_body_must_be_json(command: str) -> None:
    with pytest.raises(InvalidArgument, match="Content-Type"):
        check(LOCAL, command, OWNER, content_length="2", content_type="text/plain")
    check(LOCAL, command, OWNER, content_length="2", content_type="application/json; charset=utf-8")
    check(LOCAL, "POST /api/tasks/{task_id}/stop", OWNER)


def test_a_session_stands_for_the_token_until_it_ends() -> None:
    value = PUBLIC.open_session("secret")
    assert "secret" not in value
    check(PUBLIC, READ, cookie=f"other=1; {COOKIE}={value}")
    until, _, mac = value.partition(".")
    for wrong in (f"{int(until) + 1}.{mac}", f"1.{mac}", mac, "", f"{until}.", "secret", f"{until}.{'0' * 64}"):
        with pytest.raises(Unauthenticated):
            check(PUBLIC, READ, cookie=f"{COOKIE}={wrong}")
    with pytest.raises(Unauthenticated):
        check(Guard(public=True, token="another"), READ, cookie=f"{COOKIE}={value}")
    with pytest.raises(Unauthenticated):
        PUBLIC.open_session("wrong")


def test_without_a_token_nobody_is_known() -> None:
    nobody = Guard(public=False, token=None)
    for header, value in (("authorization", "Bearer "), ("authorization", "Bearer None"), ("cookie", f"{COOKIE}=99.")):
        with pytest.raises(Unauthenticated):
            nobody.check(READ, "GET", Headers({"host": "localhost", header: value}), None)


def test_a_path_that_no_route_takes_is_for_the_app_to_answer_unless_a_stranger_asks() -> None:
    LOCAL.check(None, "PUT", Headers({"host": "localhost"}), OWNER)
    with pytest.raises(Unauthenticated):
        LOCAL.check(None, "PUT", Headers({"host": "localhost"}), None)

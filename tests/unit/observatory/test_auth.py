"""Who may call: loopback by name, the token elsewhere, other web sites never."""

import pytest
from starlette.datastructures import Headers

from strata.errors import InvalidArgument, PermissionDenied, Unauthenticated
from strata.observatory.http.auth import Guard

LOCAL = Guard(public=False, token="secret")
PUBLIC = Guard(public=True, token="secret")


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "LOCALHOST"])
def test_loopback_names_are_served(host: str) -> None:
    LOCAL.check("GET", "/api/workers", Headers({"host": host}))


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:3000", "", "10.0.0.1"])
def test_other_names_are_refused(host: str) -> None:
    with pytest.raises(PermissionDenied):
        LOCAL.check("GET", "/", Headers({"host": host}))


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_cannot_change_anything(headers: dict[str, str]) -> None:
    with pytest.raises(PermissionDenied):
        LOCAL.check("POST", "/api/tasks", Headers({"host": "localhost:3000", **headers}))
    LOCAL.check("GET", "/api/tasks", Headers({"host": "localhost:3000", **headers}))


def test_a_body_must_be_json() -> None:
    base = {"host": "localhost", "content-length": "2"}
    with pytest.raises(InvalidArgument, match="Content-Type"):
        LOCAL.check("POST", "/api/tasks", Headers({**base, "content-type": "text/plain"}))
    LOCAL.check("POST", "/api/tasks", Headers({**base, "content-type": "application/json; charset=utf-8"}))
    LOCAL.check("POST", "/api/tasks/x/stop", Headers({"host": "localhost"}))


def test_a_public_address_needs_the_token_everywhere_but_for_health() -> None:
    with pytest.raises(Unauthenticated):
        PUBLIC.check("GET", "/", Headers({"host": "a.example"}))
    with pytest.raises(Unauthenticated):
        PUBLIC.check("GET", "/", Headers({"host": "a.example", "authorization": "Bearer wrong"}))
    PUBLIC.check("GET", "/", Headers({"host": "a.example", "authorization": "Bearer secret"}))
    PUBLIC.check("GET", "/stream", Headers({"host": "a.example", "cookie": "other=1; strata_token=secret"}))
    PUBLIC.check("GET", "/api/health", Headers({"host": "a.example"}))


def test_without_a_token_nobody_is_known() -> None:
    assert not Guard(public=False, token=None).knows(Headers({"authorization": "Bearer "}))

"""Who may call: anybody on loopback, holders of the token elsewhere; other web sites nowhere.

The token is Settings.token or the file `<data_dir>/token`. A browser gets it once by `/?token=…`, then as a cookie.
"""

import hmac
from dataclasses import dataclass
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from strata.config import Settings
from strata.errors import InvalidArgument, PermissionDenied, Unauthenticated
from strata.network import check_exposure, is_loopback
from strata.token import read_token

__all__ = ["COOKIE", "Guard"]

COOKIE = "strata_token"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_OPEN_PATHS = frozenset({"/health", "/api/health"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides on one request from its headers alone. `public` is a bind that others can reach."""

    public: bool
    token: str | None
    names: frozenset[str] = _LOCAL_NAMES

    @classmethod
    def from_settings(cls, settings: Settings) -> "Guard":
        public = not is_loopback(settings.host)
        token = read_token(settings)
        check_exposure(settings.host, token=token, insecure=settings.insecure)
        return cls(public=public, token=token, names=_LOCAL_NAMES | {settings.host})

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raises for a request that must not be answered."""
        if not self.public:
            self._check_host(headers)
        if method in _MUTATING:
            self._check_origin(headers)
            self._check_content_type(method, headers)
        if self.public and path not in _OPEN_PATHS and not self.knows(headers):
            raise Unauthenticated("this address needs the token")

    def knows(self, headers: Headers) -> bool:
        """Whether the request carries the token, as a bearer or as the browser's cookie."""
        return any(self.matches(given) for given in _given_tokens(headers))

    def matches(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def _check_host(self, headers: Headers) -> None:
        # A foreign name that resolves to 127.0.0.1 (DNS rebinding) would make its page our origin.
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if host not in self.names:
            raise PermissionDenied(f"Host {host[:80]!r} is not served here", hint="Open http://127.0.0.1 or localhost.")

    def _check_origin(self, headers: Headers) -> None:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise PermissionDenied("requests from other web sites are refused")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            raise PermissionDenied(f"requests from {origin[:80]!r} are refused")

    def _check_content_type(self, method: str, headers: Headers) -> None:
        # A form can post text/plain across sites without asking first; JSON cannot.
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and has_body and kind != "application/json":
            raise InvalidArgument(f"Content-Type is {kind or 'missing'}", hint="Send application/json.")


def _given_tokens(headers: Headers) -> list[str]:
    given = []
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        given.append(value.strip())
    cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    if cookie is not None:
        given.append(cookie.value)
    return given

"""The door of the REST API: a request becomes a visitor, and the table of rights says what it may.

A browser of the owner is the owner, whichever page it shows. So a request must name a host that is ours, must come from
our own page when it changes or costs something, and must carry JSON.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from strata.config import Settings
from strata.errors import InvalidArgument, InvalidConfig, PermissionDenied, Unauthenticated
from strata.network import is_loopback
from strata.trust.peer import Peer
from strata.trust.proofs import Proofs
from strata.trust.table import Admission, admit
from strata.trust.token import read_token
from strata.trust.who import OWNER, Visitor, Who
from strata.types.tokens import TokenRecord

__all__ = ["COOKIE", "SESSION_S", "Guard"]

COOKIE = "strata_session"
SESSION_S = 30 * 86_400
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_OURS = frozenset({"same-origin", "none"})  # of Sec-Fetch-Site: our page, or nobody's (an address that was typed)
_ALLOW = "STRATA_ALLOWED_ORIGINS names the origins whose pages may call."
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides on one request from its connection and its headers. `public` is a bind that others can reach."""

    public: bool
    token: str | None
    names: frozenset[str] = _LOCAL_NAMES
    origins: frozenset[str] = frozenset()
    made: Callable[[], Mapping[str, TokenRecord]] = dict
    proofs: Proofs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "proofs", Proofs(self.token, self.made))

    @classmethod
    def from_settings(cls, settings: Settings, made: Callable[[], Mapping[str, TokenRecord]] = dict) -> "Guard":
        """`made` are the tokens for others, as the coordinator says."""
        token = read_token(settings)
        if not (token or is_loopback(settings.host)):
            hint = "Set STRATA_TOKEN, or write one to <data-dir>/token (mode 0600)."
            raise InvalidConfig(f"host = {settings.host!r} needs a token", hint=hint)
        return cls(
            public=not is_loopback(settings.host),
            token=token,
            made=made,
            names=_LOCAL_NAMES | {settings.host},
            origins=frozenset(settings.allowed_origins),
        )

    def check(self, command: str | None, method: str, headers: Headers, peer: Peer | None) -> Visitor:
        """Who asks; raises for a request that must not be answered. `command` is its row of the table, as METHOD and
        route; None when no route takes it."""
        named = _host(headers) in self.names
        if not (self.public or named):
            # A foreign name that resolves to 127.0.0.1 (DNS rebinding) would make its page our origin.
            raise PermissionDenied(
                f"Host {_host(headers)[:80]!r} is not served here", hint="Open http://127.0.0.1 or localhost."
            )
        proxied = any(name in headers for name in _FORWARDED)  # the connection is the proxy's, not the caller's
        visitor = self.recognise(headers, peer if named and not proxied else None)
        answer = admit(command or f"{method} elsewhere", visitor)
        if isinstance(answer, Admission):
            self._check_page(method, headers, costs=answer.rule.costs)
            _check_content_type(method, headers)
        elif command is not None or isinstance(answer, Unauthenticated):
            raise answer
        return visitor

    def recognise(self, headers: Headers, peer: Peer | None) -> Visitor:
        return self._of_session(_cookie(headers)) or self.proofs.recognise(peer, _bearer(headers))

    # --- sessions of browsers

    def open_session(self, token: str) -> str:
        """The value of the cookie that stands for the token in this browser."""
        visitor = self.proofs.recognise(None, token)
        if visitor.who is Who.STRANGER:
            raise Unauthenticated(
                visitor.fault or "this is not the cluster's token",
                hint="It is in <data-dir>/token on the server; `strata token create` there makes others.",
            )
        until = str(int(time.time()) + SESSION_S)
        return f"{until}.{visitor.token_id}.{self.proofs.sign('session', until, visitor.token_id)}"

    def _of_session(self, cookie: str) -> Visitor | None:
        """Whoever signed in with the token that the cookie stands for, if that is still good."""
        until, token_id, mac = (*cookie.split("."), "", "", "")[:3]
        if not (self.token and until.isascii() and until.isdecimal() and len(until) < 12 and int(until) > time.time()):
            return None
        if not self.proofs.is_signed(mac, "session", until, token_id):
            return None
        return self.proofs.holder(token_id) if token_id else OWNER

    # --- pages of other sites

    def _check_page(self, method: str, headers: Headers, *, costs: bool) -> None:
        """Old browsers send only Origin, programs neither. Pages of `origins` are as good as ours."""
        origin = headers.get("origin")
        if origin in self.origins:
            return
        site = headers.get("sec-fetch-site", "same-origin")
        followed = method == "GET" and not costs and headers.get("sec-fetch-mode") == "navigate"
        if site not in _OURS and not followed:
            raise PermissionDenied("requests from other web sites are refused", hint=_ALLOW)
        if origin is not None and _place(origin) != headers.get("host"):
            raise PermissionDenied(f"requests from {origin[:80]!r} are refused", hint=_ALLOW)


def _check_content_type(method: str, headers: Headers) -> None:
    # A form can post text/plain across sites without asking first; JSON cannot.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method in _CHANGING and has_body and kind != "application/json":
        raise InvalidArgument(f"Content-Type is {kind or 'missing'}", hint="Send application/json.")


def _place(origin: str) -> str | None:
    """host:port of an origin; None of what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host(headers: Headers) -> str:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def _bearer(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    given = headers.get("cookie", "")
    if COOKIE not in given:
        return ""
    try:
        found = SimpleCookie(given).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""

"""The REST API as commands and scripts call it: JSON in and out, errors as StrataErrors with the server's own words."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from strata.client.endpoints import Endpoints, find_endpoints
from strata.client.mismatch import untrusted
from strata.config import Settings
from strata.error_codes import rebuild_error
from strata.errors import InvalidArgument, ObservatoryUnavailable, StrataError
from strata.network import is_loopback, join_address
from strata.trust.access import client_context

__all__ = ["Rest", "path_part", "query_of"]

_TIMEOUT_S = 30.0


def path_part(name: object) -> str:
    """A name in a path. What no server could have, such as half of a character, is asked for as its escape, and not
    found. An empty one would ask for something else: it is a variable that was not set."""
    if not str(name):
        raise InvalidArgument("the id or name is empty", hint="Give the one that is meant: is a variable not set?")
    return quote(str(name), safe="", errors="backslashreplace")


def query_of(asked: Mapping[str, object] | Sequence[tuple[str, object]]) -> str:
    return urlencode(asked, errors="backslashreplace")


class Rest:
    """The observatory of the nearest cluster: see strata/client/endpoints.py."""

    def __init__(
        self,
        settings: Settings,
        client: str = "the command line",
        *,
        timeout_s: float = _TIMEOUT_S,
        at: Endpoints | None = None,
    ) -> None:
        """`client` stands in the journal beside what was changed; `at` says where it is, if that is known."""
        self._timeout_s = timeout_s
        found = at or find_endpoints(settings)
        # Of a cluster whose coordinator is known, and whose observatory has not said where it is, it is a guess.
        self.url = found.http or f"http://{join_address(settings.host, settings.http_port)}"
        self._token = found.access.token
        self._client = client
        tls = client_context(found.access.roots) if self.url.startswith("https://") else None
        # No proxy leads to this machine's own loopback, and none is to see the token that is shown there.
        direct = [ProxyHandler({})] if is_loopback(urlsplit(self.url).hostname or "") else []
        self._opener = build_opener(HTTPSHandler(context=tls), *direct)

    def get(self, path: str) -> Any:
        return self._call(path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call(path, json.dumps(body).encode())

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        return self._call(path, json.dumps(body).encode(), "PATCH")

    def delete(self, path: str) -> Any:
        return self._call(path, None, "DELETE")

    @contextmanager
    def open(
        self, path: str, body: bytes | None = None, method: str | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer as a stream, for what is too large to hold."""
        request = Request(f"{self.url}{path}", data=body, method=method)  # noqa: S310  the scheme is ours
        if body is not None:
            request.add_header("Content-Type", "application/json")
        request.add_header("X-Strata-Client", self._client)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                yield response
        except HTTPError as error:
            raise _from_answer(error) from None
        except (URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLError):
                raise untrusted(self.url, reason) from None
            raise ObservatoryUnavailable(f"no Strata answers at {self.url} ({reason})") from None

    def _call(self, path: str, body: bytes | None, method: str | None = None) -> Any:
        with self.open(path, body, method) as response:
            return json.load(response)


def _from_answer(error: HTTPError) -> StrataError:
    try:
        said = json.load(error)["error"]
        rebuilt = rebuild_error(said["code"], said["message"], hint=said.get("hint", ""))
        return rebuilt or StrataError(said["message"], hint=said.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return StrataError(f"{error.url} answered {error.code} {error.reason}")

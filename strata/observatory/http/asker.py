"""Who asked for a change, in words that the journal keeps with the reason."""

from starlette.datastructures import Headers
from starlette.requests import Request

from strata.trust.who import Visitor

__all__ = ["ASKER", "VISITOR", "asker", "describe", "visitor"]

ASKER = "strata.asker"
VISITOR = "strata.visitor"
"""Keys of the request's state."""

_CLIENT = "x-strata-client"  # what a program says of itself; who it is says its token
_MAX_CLIENT = 60


def describe(visitor: Visitor, headers: Headers) -> str:
    """`the owner on the dashboard`, `operator k3f9 through strata mcp`."""
    who = f"{visitor.who} {visitor.token_id}" if visitor.token_id else f"the {visitor.who}"
    client = "".join(char for char in headers.get(_CLIENT, "") if char.isprintable())[:_MAX_CLIENT].strip()
    if client:
        return f"{who} through {client}"
    return f"{who} on the dashboard" if "sec-fetch-site" in headers else f"{who} over REST"


def asker(request: Request) -> str:
    """Of a request that the guard has let in."""
    return str(request.scope["state"][ASKER])


def visitor(request: Request) -> Visitor:
    """The same as the guard recognised it."""
    found: Visitor = request.scope["state"][VISITOR]
    return found

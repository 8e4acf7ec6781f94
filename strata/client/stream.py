"""Opens a bidirectional stream to a Strata process: a coordinator at host:port, or an agent at its socket's path."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

from strata.client.channel import token_metadata
from strata.client.client_stream import ClientStream
from strata.client.mismatch import untrusted
from strata.errors import CoordinatorUnavailable
from strata.grpcserver.wire import Turns
from strata.network import split_address
from strata.trust.access import Access

__all__ = ["UNIX", "open_stream", "reachable"]

UNIX = "unix:"
_CONNECT_S = 2.0


async def open_stream(
    address: str, path: str, access: Access, on_message: Callable[[bytes], None], turns: Turns | None = None
) -> ClientStream:
    """A connected stream. Raises CoordinatorUnavailable when nobody is there."""
    loop = asyncio.get_running_loop()

    def build() -> ClientStream:
        return ClientStream(path, token_metadata(access.token), on_message, turns)

    try:
        async with asyncio.timeout(_CONNECT_S):
            if address.startswith(UNIX):
                with reachable(Path(address.removeprefix(UNIX))) as name:
                    _, stream = await loop.create_unix_connection(build, name)
            else:
                host, port = split_address(address)
                _, stream = await loop.create_connection(build, host, port, ssl=access.context(address, "h2"))
    except (OSError, ValueError) as error:  # ValueError: no port
        if isinstance(error, ssl.SSLError):
            raise untrusted(address, error) from None
        raise CoordinatorUnavailable(f"nobody answers at {address} ({_why(error)})") from None
    return stream


@contextlib.contextmanager
def reachable(path: Path) -> Iterator[str]:
    """The name of a socket's file that fits into an address, whatever the length of its path."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_S:g} s"
    return "connection refused" if isinstance(error, ConnectionRefusedError) else str(error) or type(error).__name__

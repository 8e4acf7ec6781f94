"""One connection to a Strata process: address, token, deadlines, retries with jitter, errors as StrataErrors.

Every Strata call may be repeated without harm, so a call that found nobody is tried again until its patience ends, with
the next coordinator where several are named.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import grpc
import grpc.aio

from strata.client.leaders import Leaders, Roaming
from strata.client.mismatch import explain
from strata.errors import DeadlineExceeded, Unavailable
from strata.protocol.status import from_rpc_error
from strata.trust.access import OPEN, Access
from strata.trust.proofs import SECRET_METADATA, SECRET_VARIABLE

__all__ = ["Channel", "dial", "open_channel", "token_metadata"]

_T = TypeVar("_T")

DEFAULT_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 0.3
_HELD_S = 2.0  # a call that was held this long had somebody at the other end
_OPTIONS = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # which is what gRPC goes by; a minute without it
    ("grpc.http2.max_pings_without_data", 0),
    # A coordinator that comes back is found within a third of a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.min_reconnect_backoff_ms", 2_000),  # in truth how long one attempt may take, however short the pauses
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
# http_proxy of the environment is for the web: one that does not lead to the cluster's hosts would be dialled instead.
_DIRECT = ("grpc.enable_http_proxy", 0)
# One that stands still must be left for the next before its work is missed. Pings are sent only while a call waits.
_SEVERAL = (
    ("grpc.keepalive_time_ms", 1_500),
    ("grpc.keepalive_timeout_ms", 1_500),
    ("grpc.http2.ping_timeout_ms", 1_500),
)


def dial(address: str) -> str:
    """host:port as gRPC wants it, from what people write."""
    return address.removeprefix("http://").removeprefix("https://").rstrip("/")


def open_channel(address: str, access: Access, options: Sequence[tuple[str, Any]] = ()) -> grpc.aio.Channel:
    """For a caller with an event loop of its own."""
    options = (*options, _DIRECT)
    if access.is_plain(address):
        return grpc.aio.insecure_channel(dial(address), options=options)
    return grpc.aio.secure_channel(dial(address), _credentials(access), options=options)


def _credentials(access: Access) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(root_certificates=access.roots.encode() or None)


def _open(address: str, access: Access, options: Sequence[tuple[str, Any]]) -> grpc.Channel:
    options = (*options, _DIRECT)
    if access.is_plain(address):
        return grpc.insecure_channel(dial(address), options)
    return grpc.secure_channel(dial(address), _credentials(access), options)


class Channel(AbstractContextManager["Channel"]):
    """A lazily connected channel. `patience_s` is how long a call goes on trying while nobody answers."""

    def __init__(self, address: str, *, access: Access = OPEN, patience_s: float = 10.0) -> None:
        self._leaders = Leaders(address)
        self.patience_s = patience_s
        self._access = access
        self._metadata = token_metadata(access.token)
        options = tuple((dict(_OPTIONS) | dict(_SEVERAL if self._leaders.several else ())).items())
        self._channels = {name: _open(name, access, options) for name in self._leaders.addresses}
        self._closed = threading.Event()
        self._heard = False  # the server's own word

    @property
    def address(self) -> str:
        """Where the next call goes."""
        return dial(self._leaders.current)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All of them, of which one leads."""
        return tuple(map(dial, self._leaders.addresses))

    def stub(self, factory: Callable[[Any], _T]) -> _T:
        if not self._leaders.several:
            return factory(self._channels[self._leaders.current])
        return factory(Roaming(lambda: self._channels[self._leaders.current]))

    def call(
        self, method: Any, request: Any, *, timeout_s: float = DEFAULT_TIMEOUT_S, patience_s: float | None = None
    ) -> Any:
        """The answer, or the StrataError that the failure stands for."""
        patience = self.patience_s if patience_s is None else patience_s
        give_up_at = 0.0
        pause = _FIRST_PAUSE_S
        unasked = len(self._channels)
        while True:
            began, asked = time.monotonic(), self._leaders.current
            try:
                answer = method(request, timeout=timeout_s, metadata=self._metadata)
                self._heard = True
                return answer
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.CANCELLED and self._closed.is_set():
                    raise self._closed_error() from error
                failure = from_rpc_error(error, address=dial(asked))
            except ValueError as error:  # gRPC's word for a channel that was closed before the call
                raise self._closed_error() from error
            now = time.monotonic()
            if not give_up_at or now - began > _HELD_S:  # patience begins when an answer first fails to come
                give_up_at, pause = now + patience, _FIRST_PAUSE_S
            if not isinstance(failure, Unavailable | DeadlineExceeded) or self._closed.is_set():
                raise failure
            self._leaders.leave(asked)
            unasked -= 1
            if unasked > 0:  # each is asked once before anything else
                continue
            if now + pause > give_up_at:
                unheard = isinstance(failure, Unavailable) and not self._heard
                raise (explain(asked, self._access) if unheard else None) or failure
            self._closed.wait(pause * (0.5 + random.random()))  # noqa: S311  # jitter
            pause = min(pause * 2, _MAX_PAUSE_S)

    def _closed_error(self) -> Unavailable:
        return Unavailable(f"the connection to {self.address} is closed")

    def close(self) -> None:
        self._closed.set()
        for channel in self._channels.values():
            channel.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def token_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """What a caller can show: the cluster's token, and in a rank the secret of its attempt."""
    secret = os.environ.get(SECRET_VARIABLE, "")
    shown = (("authorization", f"Bearer {token}" if token else ""), (SECRET_METADATA, secret))
    return tuple((name, value) for name, value in shown if value)

"""The process at the other end of one connection. The kernel is asked at most once per connection, and the answer is
never kept longer: a port that is free again may be another user's.
"""

import socket
from asyncio import BaseTransport

from strata.network import is_loopback
from strata.trust.kernel import Address, is_owner, user_of_peer, user_of_unix_peer

__all__ = ["Peer"]


class Peer:
    """`owns` is true when the kernel says that the process there runs as our own user, or as root."""

    __slots__ = ("_local", "_owns", "_remote")

    def __init__(self, local: Address | None, remote: Address | None) -> None:
        self._local = local
        self._remote = remote
        self._owns: bool | None = None

    @classmethod
    def of(cls, transport: BaseTransport) -> "Peer":
        peer = cls(_address(transport.get_extra_info("sockname")), _address(transport.get_extra_info("peername")))
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family == socket.AF_UNIX:
            peer._owns = is_owner(user_of_unix_peer(connected))
        return peer

    @property
    def owns(self) -> bool:
        if self._owns is None:
            self._owns = self._ask()
        return self._owns

    def _ask(self) -> bool:
        if self._local is None or self._remote is None or not is_loopback(self._remote[0]):
            return False
        return is_owner(user_of_peer(self._local, self._remote))


def _address(name: object) -> Address | None:
    """Of what the system calls a socket's name; None for one that has no port."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) and len(name) >= 2 else None

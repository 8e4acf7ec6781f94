"""Asks the kernel which user holds the other end of a TCP connection on this machine (sock_diag over netlink).

It asks for exactly one socket, by the connection's four addresses, which takes about 20 µs. Where the kernel gives no
answer (other systems, a peer in another network namespace, a peer that is gone) the caller is not the owner.
"""

import os
import socket
import struct
from pathlib import Path

__all__ = ["is_owner", "user_of_peer", "user_of_unix_peer"]

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1  # NLM_F_REQUEST
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = struct.pack("=II", 0xFFFFFFFF, 0xFFFFFFFF)
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_QUERY = struct.Struct("=BBBBI")  # inet_diag_req_v2 before its inet_diag_sockid
_USER_AND_INODE = struct.Struct("=II")  # of inet_diag_msg, behind its sockid and three counters
_CREDENTIALS = struct.Struct("=iII")  # ucred: pid, uid, gid
_USER_AT = _HEADER.size + 4 + 48 + 12
_ROOT = 0

Address = tuple[str, int]


def user_of_peer(local: Address, remote: Address) -> int | None:
    """The uid that holds the socket whose own address is `remote` and whose peer is `local`."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as netlink:
            netlink.setblocking(False)  # the kernel answers while we send
            netlink.sendto(_question(local, remote), (0, 0))
            answer, sender = netlink.recvfrom(4096)
    except (AttributeError, OSError, ValueError):  # no netlink here, not allowed, no answer, no IP address
        return None
    if sender[0] != 0:  # not the kernel
        return None
    return _read(answer)


def user_of_unix_peer(connected: socket.socket) -> int | None:
    """The uid that opened the other end of a Unix socket, as the kernel noted it then."""
    try:
        return int(
            _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
        )
    except (AttributeError, OSError):
        return None


def is_owner(user: int | None) -> bool:
    """Whether this uid may do everything here: it runs this process, or is root."""
    if user is None:
        return False
    return user == _ROOT or (user == os.getuid() and not _is_everybody(user))


def _question(local: Address, remote: Address) -> bytes:
    family = socket.AF_INET6 if ":" in remote[0] else socket.AF_INET
    ports = struct.pack("!HH", remote[1], local[1])
    addresses = b"".join(socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (remote, local))
    any_interface = bytes(4)
    body = _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + ports + addresses + any_interface + _NO_COOKIE
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + body


def _read(answer: bytes) -> int | None:
    if len(answer) < _USER_AT + _USER_AND_INODE.size or _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    user, inode = _USER_AND_INODE.unpack_from(answer, _USER_AT)
    # A socket that its process has closed belongs to nobody, and the kernel shows it as root's.
    return user if inode else None


def _is_everybody(user: int) -> bool:
    """In a user namespace all users that it does not know look like this one."""
    try:
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
        known = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return True
    return user == overflow and known != ["0", "0", "4294967295"]

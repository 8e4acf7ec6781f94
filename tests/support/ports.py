"""Ports for servers that must be told theirs beforehand, and for the ranks of the clusters of this worker of pytest."""

import os
import random
import socket
from pathlib import Path

__all__ = ["RANK_PORTS", "free_ports"]

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_RANKS = range(20_000, 21_000)
_OWN = 100 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10)
RANK_PORTS = f"{_RANKS.start + _OWN}-{_RANKS.start + _OWN + 99}"
"""Two clusters that know nothing of each other choose the same port now and then, and then a rank starts anew."""


def free_ports(count: int) -> list[int]:
    """Below the range that the kernel hands out by itself: no other process gets one of them by accident meanwhile. Nor
    does a rank."""
    first = int(_EPHEMERAL.read_text().split()[0])
    numbers = [*range(10_000, _RANKS.start), *range(_RANKS.stop, first)]
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().choice(numbers)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                found.add(port)
    return list(found)

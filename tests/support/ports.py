"""Ports for servers that must be told theirs beforehand."""

import random
import socket
from pathlib import Path

__all__ = ["free_ports"]

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Below the range that the kernel hands out by itself: no other process gets one of them by accident meanwhile."""
    first = int(_EPHEMERAL.read_text().split()[0])
    numbers = range(10_000, first)
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().choice(numbers)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                found.add(port)
    return list(found)

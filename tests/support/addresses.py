"""An address of this machine that is not loopback: over it the kernel vouches for nobody."""

import socket

import psutil
import pytest

__all__ = ["needs_address", "own_address"]


def own_address() -> str:
    """Empty where there is none."""
    found = [
        each.address for all_of in psutil.net_if_addrs().values() for each in all_of if each.family == socket.AF_INET
    ]
    return next((address for address in found if not address.startswith("127.")), "")


needs_address = pytest.mark.skipif(not own_address(), reason="this machine has no address but loopback")

"""Memory that a process has freed and will want again in a moment stays its own.

The C library gives the system back what is free at the end of the heap beyond 128 KB, and asks for it again a
millisecond later. A page that is touched for the first time costs a microsecond, on a virtual machine more than one.
"""

import ctypes

__all__ = ["keep_freed"]

_TRIM, _PAD, _MAP = -1, -2, -3  # mallopt's M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD
_KEPT_BYTES = 32 << 20
_STEP_BYTES = 1 << 20  # by which the heap grows
_LARGE_BYTES = 16 << 20  # from here on memory is asked for and given back each time


def keep_freed() -> bool:
    """For this process. False where the C library has no such choice."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    wishes = ((_TRIM, _KEPT_BYTES), (_PAD, _STEP_BYTES), (_MAP, _LARGE_BYTES))
    return mallopt is not None and all(mallopt(option, number) for option, number in wishes)

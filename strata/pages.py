"""Memory that only the start of a process needed: pages of libraries that it has mapped and will not look at again.

The engine alone maps 84 MB of its library while it starts, and uses 49 of them when it serves. What is given back stays
in the page cache as long as there is room: a page that is wanted again costs a soft fault, once.
"""

import contextlib
import ctypes
import re
import sys
from pathlib import Path

__all__ = ["forget_start"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+\s*(.*)")
_DONTNEED = 4


def forget_start() -> None:
    """Only where no other thread loads a library meanwhile: right after the imports, before anything runs."""
    if not sys.platform.startswith("linux"):
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError):  # a system that does not tell
        for start, end in _unchanged(Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")):
            advise(start, end - start, _DONTNEED)


def _unchanged(smaps: str) -> list[tuple[int, int]]:
    """Mappings of files that this process cannot write to and has not written to: what is dropped is read again."""
    found, place = [], None
    for line in smaps.splitlines():
        if mapping := _MAPPING.fullmatch(line):
            start, end, rights, file = mapping.groups()
            place = (int(start, 16), int(end, 16)) if file.startswith("/") and "w" not in rights else None
        elif place and line.startswith("Anonymous:") and line.split()[1] == "0":
            found.append(place)
    return found

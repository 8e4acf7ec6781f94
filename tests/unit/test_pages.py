"""What only the start needed is given back: the process holds less, and everything still works."""

import subprocess
import sys

import pytest

from strata.pages import _unchanged

_SCRIPT = """
import os, ssl, sqlite3, numpy
from strata.pages import forget_start

def files_kb():
    with open("/proc/self/smaps_rollup") as told:
        found = dict(line.split(":", 1) for line in list(told)[1:])
    return int(found["Rss"].split()[0]) - int(found["Anonymous"].split()[0])

os.environ["MARK"] = "kept"
before = files_kb()
forget_start()
after = files_kb()
assert sqlite3.connect(":memory:").execute("SELECT 1 + 1").fetchone() == (2,)
assert numpy.linalg.det(numpy.eye(64)) == 1.0
assert ssl.create_default_context() and os.environ["MARK"] == "kept"
print(before, after)
"""

_SMAPS = """7f00-7f10 r-xp 00000000 08:01 1                          /lib/code.so
Rss:                  40 kB
Anonymous:             0 kB
7f10-7f20 r--p 00010000 08:01 1                          /lib/code.so
Anonymous:             4 kB
7f20-7f30 rw-p 00020000 08:01 1                          /lib/code.so
Anonymous:             0 kB
7f30-7f40 r--s 00000000 08:01 2                          /a file (deleted)
Anonymous:             0 kB
7f40-7f50 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
7f50-7f60 r--p 00000000 00:00 0\x20
Anonymous:             0 kB
"""


def test_only_files_that_were_never_written_to_are_given_back() -> None:
    assert _unchanged(_SMAPS) == [(0x7F00, 0x7F10), (0x7F30, 0x7F40)]
    assert _unchanged("") == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell")
def test_a_process_holds_less_and_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after < before / 2

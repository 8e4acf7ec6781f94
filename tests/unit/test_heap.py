"""What a process frees, it has when it asks again: counted in pages that the kernel had to give it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing is asked for")

_SCRIPT = """
import resource, sys
from strata.heap import keep_freed

def given():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    assert keep_freed()
for number in range(110):
    if number == 10:
        before = given()
    blocks = [bytes([number]) * 100_000 for _ in range(8)]
    del blocks
print((given() - before) // 100)
"""


def pages_a_round(choice: str) -> int:
    done = subprocess.run([sys.executable, "-c", _SCRIPT, choice], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_what_is_freed_is_kept() -> None:
    """Eight hundred kilobytes, again and again."""
    assert pages_a_round("keep") == 0


def test_without_it_the_kernel_is_asked_each_time() -> None:
    """Else the other test would hold for no reason."""
    assert pages_a_round("leave") > 100

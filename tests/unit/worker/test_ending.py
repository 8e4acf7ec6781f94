"""What is known of a script when its interpreter ends: that it came to its last line, or not. Real interpreters."""

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import atexit, sys
from strata.worker.ending import Ending

ending = Ending()
atexit.register(lambda: print(ending.is_well))

def main():
    ending.watch()

main()
{end}
"""


@pytest.mark.parametrize("how", [("late.py",), ("-m", "late")])
@pytest.mark.parametrize(
    ("end", "well"),
    [
        ("", True),
        ("for _ in range(3): pass", True),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass", True),
        ("sys.exit()", True),
        ("sys.exit(0)", True),
        ("sys.exit('why')", False),
        ("raise SystemExit(1)", False),
        ("raise SystemExit", False),  # nobody knows with which code
        ("1 / 0", False),
        ("sys.excepthook = lambda *_: None\n1 / 0", False),
        ("with open(__file__): raise SystemExit(1)", False),
        ("try:\n    raise SystemExit(1)\nfinally:\n    print(end='')", False),
    ],
)
def test_the_end_of_a_script(tmp_path: Path, how: tuple[str, ...], end: str, well: bool) -> None:
    (tmp_path / "late.py").write_text(_SCRIPT.format(end=end))
    done = subprocess.run([sys.executable, *how], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == f"{well}\n", done.stderr

"""What is taken for a cause of death: the exception of a real program and argparse's word, never just a last line."""

import subprocess
import sys
from pathlib import Path

import pytest

from strata.agent.causes import Cause, CauseWatch
from strata.agent.oom import OomWatch

_GROUP = "raise ExceptionGroup('two of them', [ValueError('a'), KeyError('b')])"
_TORCH = (  # its excepthook names the rank in every line
    "import sys, traceback\n"
    "def hook(*error):\n"
    "    text = ''.join(traceback.format_exception(*error))\n"
    "    print('\\n'.join(f'[rank1]: {line}' for line in text.splitlines()), file=sys.stderr)\n"
    "sys.excepthook = hook\n"
    "raise KeyError('lr')"
)
_CHAINED = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('no luck') from error"
_NOISY = "import atexit, sys\natexit.register(lambda: print('bye', file=sys.stderr))\nraise KeyError('lr')"
_CAUGHT = (
    "import sys, traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"
    "for n in range(50):\n    print(f'step {n}', file=sys.stderr)\nsys.exit(3)"
)
_USAGE = "import argparse\nargparse.ArgumentParser(prog='train.py').parse_args(['--ls'])"


def _cause(tmp_path: Path, program: str) -> Cause:
    script = tmp_path / "program.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    watch = CauseWatch()
    for line in done.stderr.splitlines():
        watch.feed(line)
    return watch.of_exit(done.returncode)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("raise ValueError('the flux is too low')", ("ValueError", "ValueError: the flux is too low")),
        ("def f(\n", ("SyntaxError", "SyntaxError: '(' was never closed")),
        (
            "if True:\nprint(1)",
            ("IndentationError", "IndentationError: expected an indented block after 'if' statement on line 1"),
        ),
        ("import no_such", ("ModuleNotFoundError", "ModuleNotFoundError: No module named 'no_such'")),
        (
            "import json; json.loads('')",
            ("JSONDecodeError", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ),
        ("raise ValueError", ("ValueError", "ValueError")),
        (_CHAINED, ("RuntimeError", "RuntimeError: no luck")),
        (_NOISY, ("KeyError", "KeyError: 'lr'")),
        (_GROUP, ("ExceptionGroup", "ExceptionGroup: two of them (2 sub-exceptions)")),
        (_TORCH, ("KeyError", "KeyError: 'lr'")),
        (_USAGE, ("usage", "train.py: error: unrecognized arguments: --ls")),
    ],
)
def test_the_cause_of_a_real_program(tmp_path: Path, program: str, cause: tuple[str, str]) -> None:
    assert _cause(tmp_path, program) == cause


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nprint('100 % done, 3.1 it/s', file=sys.stderr)\nsys.exit(7)",
        "import sys\nsys.exit('a word of its own')",
        "import os, signal\nprint('Error: last words')\nos.kill(os.getpid(), signal.SIGKILL)",
        _CAUGHT,
    ],
)
def test_a_last_line_is_no_cause(tmp_path: Path, program: str) -> None:
    assert _cause(tmp_path, program) == Cause()


def test_want_of_memory_is_a_kill_with_the_kernels_count_risen(tmp_path: Path) -> None:
    counters = tmp_path / "vmstat"
    counters.write_text("pgfault 7\noom_kill 4\n")
    watch = OomWatch(counters)
    watch.look()
    assert not watch.struck(-9)
    counters.write_text("pgfault 9\noom_kill 5\n")
    assert [watch.struck(code) for code in (-9, 137, -15, 1, None)] == [True, True, False, False, False]
    watch.look()  # between the kill and its report
    assert watch.struck(-9)
    watch.look()
    assert not watch.struck(-9)
    assert not OomWatch(tmp_path / "no-such-file").struck(-9)

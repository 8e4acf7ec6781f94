"""Where a process stands, asked from outside: in Python, in C code that holds the interpreter's lock, stopped by a
signal; and what is never sent the signal.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.agent.stacks import Standing, is_stopped, print_all_stacks, take_stack
from tests.support.waiting import eventually

_PREPARED = """
from strata.worker.stacks import print_stacks_on_signal
print_stacks_on_signal()
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
def ready():
    print("ready", flush=True)
"""
_SLEEPS = "import time\ndef work():\n    ready(); time.sleep(1e9)\nwork()\n"
_HOLDS_THE_LOCK = """
import ctypes
library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
def work():
    library.pthread_mutex_lock(mutex)
    ready(); library.pthread_mutex_lock(mutex)
work()
"""
_IN_A_LIBRARY = "import queue\ndef work():\n    ready(); queue.Queue().get()\nwork()\n"


class _Program:
    """A script that is ready when it says so; its stderr is the file that an agent follows."""

    def __init__(self, folder: Path, text: str) -> None:
        self.script, self.stderr = folder / "script.py", folder / "stderr"
        self.script.write_text(text)
        with self.stderr.open("ab") as stderr:
            self.process = subprocess.Popen([sys.executable, str(self.script)], stdout=subprocess.PIPE, stderr=stderr)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", self.stderr.read_text()
        eventually("it sleeps", lambda: self._state() == "S")

    def _state(self) -> str:
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def line(self, words: str) -> str:
        """Where these words stand in the script, as a standing names it."""
        lines = self.script.read_text().splitlines()
        return f"{self.script}:{1 + next(at for at, line in enumerate(lines) if words in line)} (work)"

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        eventually("it is stopped", lambda: is_stopped(self.process.pid))

    def look(self, *, wake: bool = False) -> Standing:
        return asyncio.run(take_stack(self.process.pid, self.stderr, wake=wake))


@contextlib.contextmanager
def _running(folder: Path, text: str) -> Iterator[_Program]:
    program = _Program(folder, text)
    try:
        yield program
    finally:
        program.process.kill()
        program.process.communicate()


def test_a_line_of_python_and_every_thread(tmp_path: Path) -> None:
    """A look prints one stack. Those of threads that run are not read before the end: that crashes one in some thousand
    times (seen: SIGSEGV)."""
    with _running(tmp_path, _PREPARED + _SLEEPS) as program:
        assert program.look() == Standing(program.line("time.sleep(1e9)"))
        assert program.stderr.read_text().count("most recent call first") == 1
        asyncio.run(print_all_stacks(program.process.pid, program.stderr))
        assert program.stderr.read_text().count("most recent call first") == 3
        assert program.process.poll() is None


def test_a_c_call_that_holds_the_lock(tmp_path: Path) -> None:
    with _running(tmp_path, _PREPARED + _HOLDS_THE_LOCK) as program:
        assert program.look() == Standing(program.line("ready(); library.pthread_mutex_lock"))


def test_a_line_of_a_library_is_given_with_the_scripts_own(tmp_path: Path) -> None:
    with _running(tmp_path, _PREPARED + _IN_A_LIBRARY) as program:
        where = program.look().where
        assert "threading.py:" in where
        assert where.endswith(f", called from {program.line('queue.Queue().get()')}")


def test_a_stopped_process_is_woken_only_for_its_end(tmp_path: Path) -> None:
    with _running(tmp_path, _PREPARED + _SLEEPS) as program:
        program.stop()
        assert program.look() == Standing("stopped by a signal")
        assert is_stopped(program.process.pid)
        assert program.look(wake=True) == Standing(f"{program.line('time.sleep(1e9)')}, stopped by a signal")


@pytest.mark.parametrize("first", ["", "import signal; signal.signal(signal.SIGRTMIN + 5, signal.SIG_IGN)\n"])
def test_a_program_that_prints_no_stacks_lives_on(tmp_path: Path, first: str) -> None:
    """One without the SDK, for which the signal would be the end; and one that has a use of its own for it."""
    prepared = first + _PREPARED if first else _PREPARED.partition("import threading\n")[2].partition("\n")[2]
    with _running(tmp_path, prepared + _SLEEPS) as program:
        assert not program.look().waiting
        assert program.process.poll() is None
        assert program.stderr.read_text() == ""

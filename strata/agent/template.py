"""A template: an interpreter that does the imports of a task's ranks once. Spares are forks of it, each made in
milliseconds. Imports that leave a thread, a child or an open device behind cannot be forked: such an interpreter is a
spare itself.
"""

import contextlib
import ctypes
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from strata.agent.spare import OF_RANKS, Kind, Spare, end, send

__all__ = ["Template"]

_PROGRAM = str(Path(__file__).with_name("becoming.py"))
_PR_SET_CHILD_SUBREAPER = 36
_FORK_S = 2.0  # a fork takes milliseconds. The agent waits for it, and is taken for dead after a silence of 5 s


class Template:
    """Started at once. `ready` when its imports are done and it can be forked; `spare` is itself when it cannot be."""

    def __init__(self, kind: Kind, modules: Sequence[str], folder: Path) -> None:
        self.kind = kind
        self.ready = False
        self.spare: Spare | None = None
        self.unfit = ""  # a module that cannot be imported ahead of a rank
        self.memory_bytes = 0
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        # What its imports print is the rank's to print: it is kept, in files like a rank's.
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(2))
            stack.enter_context(theirs)
            undo = stack.enter_context(contextlib.ExitStack())
            undo.callback(self._channel.close)
            self.child = subprocess.Popen(
                (*kind.command, _PROGRAM, str(theirs.fileno())),
                env=kind.env,
                cwd=kind.working_dir or None,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            undo.pop_all()
        send(self._channel, {"modules": list(modules), "of_ranks": sorted(OF_RANKS)})

    def listen(self) -> None:
        """Takes its word, if there is one by now: that it can be forked, that it is a spare, or which module it cannot
        import ahead."""
        with contextlib.suppress(BlockingIOError, ConnectionError, psutil.Error):
            word, _, name = self._channel.recv(1000).decode().partition(" ")
            if word == "unfit":
                self.unfit = name
            elif word == "warm":
                self.spare = Spare(self.kind, self.child, self._channel)
            elif word == "template":
                self.memory_bytes = int(psutil.Process(self.child.pid).memory_full_info().uss)
                self.ready = True

    def fork(self) -> Spare | None:
        """One more spare, a child of this process; None when the template is no good any more."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as undo:
            undo.callback(channel.close)
            with theirs, _taking_in_orphans():
                pid = _pid_of_fork(channel) if send(self._channel, {}, theirs.fileno()) else None
            with contextlib.suppress(ChildProcessError):
                if pid is not None:
                    spare = Spare(self.kind, _Forked(pid), channel)
                    undo.pop_all()
                    return spare
        return None

    def close(self) -> None:
        self._channel.close()
        end(self.child)


def _pid_of_fork(channel: socket.socket) -> int | None:
    """As it says itself when it has become our child."""
    channel.settimeout(_FORK_S)
    try:
        word = channel.recv(100).decode()
    except TimeoutError:
        return None
    channel.setblocking(False)
    return int(word.partition(" ")[2]) if word else None


@contextlib.contextmanager
def _taking_in_orphans() -> Iterator[None]:
    """Meanwhile a process below this one that loses its parent becomes our child, and no longer init's."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class _Forked:
    """A child that nobody here has started. Raises ChildProcessError when it is none."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        self.poll()

    def poll(self) -> int | None:
        return self._take(os.WNOHANG)

    def wait(self) -> int:
        code = self._take(0)
        assert code is not None
        return code

    def _take(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, how)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

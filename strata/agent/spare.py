"""One spare: an interpreter of this agent that has done the imports of a rank and waits to become one."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from strata.launchers.base import LaunchSpec

__all__ = ["OF_RANKS", "Kind", "Spare", "kind_of"]

_PROGRAM = str(Path(__file__).with_name("becoming.py"))
_PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")
_FLAG = re.compile(r"-[bBdEIOPqsSuv]+\Z")
_WARM = b"warm"

# What is each rank's own, or each attempt's. All other variables a spare has from its start, as its rank would have.
OF_RANKS = frozenset(
    {
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NODE_RANK",
        "RANK",
        "STRATA_ATTEMPT",
        "STRATA_GANG_PORT",
        "STRATA_INCARNATION",
        "STRATA_LOCAL_RANK",
        "STRATA_RANK",
        "STRATA_RANK_SECRET",
        "STRATA_WORKER_ID",
        "STRATA_WORLD_NUMBER",
        "STRATA_WORLD_SIZE",
        "WORLD_SIZE",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a spare must have from its start to become a rank: the interpreter with its flags, the environment that all
    ranks share, and the working folder."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    working_dir: str


def kind_of(spec: LaunchSpec) -> Kind | None:
    """The kind of spare that can become this rank; None when only its own command can be it."""
    program = _program_of(spec.argv)
    if program is None or any("\0" in argument for argument in spec.argv):
        return None
    env = {name: value for name, value in spec.env.items() if name not in OF_RANKS}
    return Kind(command=spec.argv[:program], env=env, working_dir=spec.working_dir)


def _program_of(argv: Sequence[str]) -> int | None:
    """Where `-m` or the script stands in a command line of Python; None when there is no such thing in it."""
    if not _PYTHON.match(Path(argv[0]).name):
        return None
    for place in range(1, len(argv)):
        if _FLAG.match(argv[place]):
            continue
        if argv[place] == "-m":
            return place if place + 1 < len(argv) else None
        return place if argv[place].endswith(".py") else None
    return None


class Spare:
    """Started at once; `warm` when its imports are done."""

    def __init__(self, kind: Kind, modules: Sequence[str], folder: Path) -> None:
        self.kind = kind
        self.warm = False
        self.unfit = ""  # a module that cannot be imported ahead of a rank
        self.memory_bytes = 0
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        # What its imports print is the rank's to print: the spare keeps it, in files like a rank's.
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
        self._send({"modules": list(modules), "of_ranks": sorted(OF_RANKS)})

    def listen(self) -> None:
        """Takes its word, if there is one by now: that it is warm, or which module it cannot import ahead."""
        with contextlib.suppress(BlockingIOError, ConnectionError, psutil.Error):
            word = self._channel.recv(1000)
            self.warm = word == _WARM
            self.unfit = "" if self.warm else word.decode()
            if self.warm:  # from now on it only waits: this is what it alone holds until it becomes a rank
                self.memory_bytes = int(psutil.Process(self.child.pid).memory_full_info().uss)

    def become(self, spec: LaunchSpec) -> bool:
        """Hands it a rank's work. False when it is dead: then nothing has happened."""
        place = _program_of(spec.argv)
        assert place is not None, spec.argv
        module = spec.argv[place] == "-m"
        order = {
            "argv": spec.argv,
            "env": dict(spec.env),
            "module": spec.argv[place + 1] if module else "",
            "script": "" if module else spec.argv[place],
            "arguments": spec.argv[place + (2 if module else 1) :],
        }
        assert spec.stdout is not None
        assert spec.stderr is not None
        spec.stdout.parent.mkdir(parents=True, exist_ok=True)
        with spec.stdout.open("ab") as out, spec.stderr.open("ab") as err:
            return self._send(order, out, err)

    def _send(self, message: Mapping[str, Any], *files: IO[bytes]) -> bool:
        """In a file, so that no size of it can make this agent wait."""
        with os.fdopen(os.memfd_create("order"), "wb") as content:
            content.write(json.dumps(message).encode())
            content.flush()
            try:
                socket.send_fds(self._channel, [b"."], [content.fileno(), *(file.fileno() for file in files)])
            except OSError:
                return False
        return True

    def close(self, *, kill: bool) -> None:
        """Lets go of it, with `kill` by ending it."""
        self._channel.close()
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()

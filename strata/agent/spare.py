"""One spare: a process of this agent that has done the imports of a rank and waits to become one."""

import contextlib
import json
import os
import re
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from strata.launchers.base import LaunchSpec
from strata.launchers.local import Child

__all__ = ["OF_RANKS", "Kind", "Spare", "end", "kind_of", "send"]

_PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")
_FLAG = re.compile(r"-[bBdEIOPqsSuv]+\Z")

# What is each rank's own, or each attempt's. All other variables a spare has from its start, as its rank would have.
OF_RANKS = frozenset(
    {
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
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
        "STRATA_GPUS",
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
    """A process that has done the imports of its ranks and waits on its channel to become one."""

    def __init__(self, kind: Kind, child: Child, channel: socket.socket) -> None:
        self.kind = kind
        self.child = child
        self._channel = channel
        self.memory_bytes = 0

    def weigh(self) -> None:
        """What it alone holds until it becomes a rank: it only waits."""
        with contextlib.suppress(psutil.Error):  # it has died
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
            return send(self._channel, order, out.fileno(), err.fileno())

    def close(self, *, kill: bool) -> None:
        """Lets go of it, with `kill` by ending it."""
        self._channel.close()
        if kill:
            end(self.child)


def send(channel: socket.socket, message: Mapping[str, Any], *files: int) -> bool:
    """Tells a spare or a template. False when it is dead. In a file, so that no size of it can make this agent wait."""
    with os.fdopen(os.memfd_create("order"), "wb") as content:
        content.write(json.dumps(message).encode())
        content.flush()
        try:
            socket.send_fds(channel, [b"."], [content.fileno(), *files])
        except OSError:
            return False
    return True


def end(child: Child) -> None:
    """Kills the whole session of it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()

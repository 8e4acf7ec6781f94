"""What every launcher can do: start a program somewhere, watch it and stop it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from strata.errors import Unavailable

__all__ = ["SENT_AWAY", "Exit", "LaunchSpec", "Launcher", "Standing", "ask_program"]

SENT_AWAY = 75  # the exit code of an agent whose host goes away before its task is over: EX_TEMPFAIL, try again later


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """A program to run; `tag` is its name there. `copies` is how many of it a scheduler should start (a local launcher
    starts one), and `cpus` what each of them needs. `shared` says that all copies must find the same files in their
    working folder."""

    argv: tuple[str, ...]
    tag: str
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = ""
    stdout: Path | None = None
    stderr: Path | None = None
    copies: int = 1
    cpus: int = 1
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a program ended. A code below 0 is a signal; None means that nobody saw the end."""

    code: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a program is doing, in the launcher's words. `pending` is true while it waits for a place to run."""

    text: str
    pending: bool = False


class Launcher(Protocol):
    """A handle is a durable string: whoever holds it, even after a restart, can go on from there. Calls block for
    seconds at most, except `stop`, which takes up to its grace."""

    def prepare(self, spec: LaunchSpec) -> None:
        """Raises InvalidArgument or Unavailable when `start` could not work; changes nothing."""
        ...

    def start(self, spec: LaunchSpec) -> str:
        """Starts it and returns its handle. Never called twice for one tag that is running."""
        ...

    def poll(self, handle: str) -> Exit | None:
        """None while it runs, or waits for its place."""
        ...

    def describe(self, handle: str) -> Standing:
        """A line for people who wait for the program. Never raises."""
        ...

    def signal(self, handle: str, number: int) -> None:
        """Sends a signal to all its processes; does nothing when they are gone."""
        ...

    def stop(self, handle: str, grace_s: float) -> Exit:
        """SIGTERM, up to `grace_s`, SIGKILL; returns when it is verifiably gone."""
        ...


def ask_program(
    command: Sequence[str], what: str, timeout_s: float, *, stdin: str, env: Mapping[str, str], check: bool
) -> str:
    """The output of a scheduler's own program, which `what` names in the Unavailable that is raised when it cannot be
    run, takes too long or, with `check`, fails."""
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, **env},
            start_new_session=True,  # Ctrl-C in a terminal is for whoever asks, not for the program
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{what} failed: {error}") from None
    if done.returncode and check:
        raise Unavailable(f"{what} failed: {done.stderr.strip()[-300:]}")
    return done.stdout

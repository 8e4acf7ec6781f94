"""Agents as a Slurm job: one per node under srun. Slurm places and ends them; restarting a rank is Strata's own work.

Only sbatch, squeue, scontrol and scancel are used; no accounting store is needed.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import Exit, LaunchSpec

__all__ = ["SlurmLauncher", "batch_script"]

_POLL_S = 0.5
_TIMEOUT_S = 30.0
_GONE = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL"}


def batch_script(spec: LaunchSpec, partition: str | None = None) -> str:
    """What sbatch gets: shown by a dry run, quoted throughout. Secrets are not in it: they come by the environment."""
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={_job_name(spec.tag)}",
        f"#SBATCH --nodes={spec.copies}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --output={spec.stdout or '/dev/null'}",
        "#SBATCH --open-mode=append",
        "#SBATCH --export=ALL",
    ]
    if partition:
        lines.append(f"#SBATCH --partition={partition}")
    if spec.working_dir:
        lines.append(f"#SBATCH --chdir={spec.working_dir}")
    # One agent that dies must not take the others along; srun must not die of the SIGTERM that is meant for them.
    lines += ["trap : TERM", f"srun --kill-on-bad-exit=0 {shlex.join(spec.argv)} &", "wait; wait", ""]
    return "\n".join(lines)


class SlurmLauncher:
    """A handle is the job's id."""

    def __init__(self, *, partition: str | None = None) -> None:
        self._partition = partition

    def prepare(self, spec: LaunchSpec) -> None:
        for program in ("sbatch", "squeue", "scontrol", "scancel"):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is not installed here", hint="Run this on a Slurm login node.")
        if spec.stdout is not None and not spec.stdout.parent.is_dir():
            raise InvalidArgument(f"the folder {spec.stdout.parent} does not exist")
        self._call("scontrol", "ping")

    def start(self, spec: LaunchSpec) -> str:
        if spec.working_dir:
            Path(spec.working_dir).mkdir(parents=True, exist_ok=True)
        script = batch_script(spec, self._partition)
        output = self._call("sbatch", "--parsable", stdin=script, env=dict(spec.env))
        return output.strip().partition(";")[0]

    def poll(self, handle: str) -> Exit | None:
        state = self._state(handle)
        if state not in _GONE and state:
            return None
        shown = self._call("scontrol", "show", "job", handle, check=False)
        code = re.search(r"ExitCode=(\d+):(\d+)", shown)
        if code is None:
            return Exit(code=None, reason="Slurm no longer knows the job")
        number = -int(code[2]) if code[2] != "0" else int(code[1])
        return Exit(code=number, reason=f"the job is {state or 'gone'}")

    def signal(self, handle: str, number: int) -> None:
        self._call("scancel", f"--signal={signal.Signals(number).name.removeprefix('SIG')}", handle, check=False)

    def stop(self, handle: str, grace_s: float) -> Exit:
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self._call("scancel", handle, check=False)
            time.sleep(_POLL_S)
        return ended

    def adopt(self, tag: str) -> str | None:
        found = self._call("squeue", "--noheader", f"--name={_job_name(tag)}", "--format=%A").split()
        return found[0] if found else None

    def _state(self, handle: str) -> str:
        return self._call("squeue", "--noheader", f"--jobs={handle}", "--format=%T", check=False).strip()

    def _call(self, *command: str, stdin: str = "", env: dict[str, str] | None = None, check: bool = True) -> str:
        try:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                env={**os.environ, **(env or {})},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{command[0]} failed: {error}") from None
        if done.returncode and check:
            raise Unavailable(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
        return done.stdout


def _job_name(tag: str) -> str:
    return f"strata-{tag}"

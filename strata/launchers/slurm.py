"""Agents as a Slurm job: one per node under srun. Slurm places and ends them; restarting a rank is Strata's own work. A
job with the option `requeue` goes back to the queue when its time is over, and on with its task when it has a place.

Only sbatch, squeue, scontrol and scancel are used; no accounting store is needed.
"""

import re
import shlex
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import SENT_AWAY, Exit, LaunchSpec, Standing, ask_program

__all__ = ["SlurmLauncher", "batch_script"]

_POLL_S = 0.5
_TIMEOUT_S = 30.0
_NO_ARRAY = "Submit a task for each with `strata run --detach`: each is a job of its own."
_PENDING = {"PENDING", "CONFIGURING", "REQUEUED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
_GONE = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL"}
_OPTION = re.compile(r"[a-z][a-z-]*\Z")
_WARN = """warn() {
  ends=$(date -d "$(squeue --noheader --jobs=$SLURM_JOB_ID --format=%e)" +%s)
  printf '{"reason": "Slurm job %s ends", "deadline": "%s"}' "$SLURM_JOB_ID" "$ends" >"$STRATA_NOTICE_FILE"
}
trap warn USR1"""
_WARNING = "B:USR1@120"  # so long before its end a job is told of it that is to be queued again


def batch_script(spec: LaunchSpec, options: Mapping[str, str] | None = None) -> str:
    """What sbatch gets, quoted throughout. Secrets are not in it: they come by the environment."""
    given = {
        "job-name": f"strata-{spec.tag}",
        "nodes": str(spec.copies),
        "ntasks-per-node": "1",
        "cpus-per-task": str(spec.cpus),
        "output": str(spec.stdout or "/dev/null"),
        "open-mode": "append",
        "export": "ALL",
        **({"chdir": spec.working_dir} if spec.working_dir else {}),
        **(options or {}),
    }
    if "requeue" in given:
        given.setdefault("signal", _WARNING)
    lines = ["#!/bin/bash", *(_directive(name, value) for name, value in given.items())]
    # Since 22.05 srun no longer takes this from sbatch: the ranks would share one core.
    lines.append("export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK")
    # A warning goes to the agents as a file with the job's end in it. As a signal it would reach the ranks, too, and
    # whatever they have started.
    notice = shlex.quote(f"{spec.working_dir or '.'}/notice-{spec.tag}")
    lines += [f"export STRATA_NOTICE_FILE={notice}", 'rm -f "$STRATA_NOTICE_FILE"', _WARN]
    # One agent that dies must not take the others along; srun must not die of the SIGTERM that is meant for them. The
    # signal ends a `wait`, so it is repeated until srun is gone; the job ends with srun's code.
    lines += ["trap : TERM", f"srun --kill-on-bad-exit=0 {shlex.join(spec.argv)} &"]
    lines.append("while wait $!; code=$?; kill -0 $! 2>/dev/null; do :; done")
    if "requeue" in given:
        lines.append(f"[ $code -ne {SENT_AWAY} ] || scontrol requeue $SLURM_JOB_ID")
    return "\n".join([*lines, "exit $code", ""])


def _directive(name: str, value: str) -> str:
    """A line of options; one without a value has none behind its name, as `requeue`."""
    return f"#SBATCH --{name}={_quoted(value)}" if value else f"#SBATCH --{name}"


class SlurmLauncher:
    """A handle is the job's id. `options` are sbatch's own long ones: partition, account, time, gres …"""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = dict(options or {})
        for name, value in self._options.items():
            if name == "array":
                raise InvalidArgument("a job array is many jobs, and this is one task", hint=_NO_ARRAY)
            if not _OPTION.match(name) or "\n" in value:
                raise InvalidArgument(f"{name}={value!r} is no option of sbatch", hint="For example partition=gpu.")

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
        script = batch_script(spec, self._options)
        output = self._call("sbatch", "--parsable", stdin=script, env=spec.env)
        return output.strip().partition(";")[0]

    def poll(self, handle: str) -> Exit | None:
        state = self._queued(handle)[0]
        if state not in _GONE and state:
            return None
        shown = self._call("scontrol", "show", "job", handle, check=False)
        code = re.search(r"ExitCode=(\d+):(\d+)", shown)
        if code is None:
            return Exit(code=None, reason=f"Slurm no longer knows job {handle}")
        number = -int(code[2]) if code[2] != "0" else int(code[1])
        said = re.search(r"JobState=(\S+) Reason=(\S+)", shown)
        why = f" ({said[2]})" if said and said[2] != "None" else ""
        if number == SENT_AWAY:
            why = ": its time was over, and its ranks have left; with -o requeue it would go on"
        return Exit(code=number, reason=f"job {handle} is {said[1] if said else state or 'gone'}{why}")

    def describe(self, handle: str) -> Standing:
        try:
            state, where = self._queued(handle)
        except Unavailable as error:
            return Standing(text=str(error))
        return Standing(text=f"job {handle} is {state or 'gone'} {where}".strip(), pending=state in _PENDING)

    def signal(self, handle: str, number: int) -> None:
        self._call("scancel", f"--signal={signal.Signals(number).name.removeprefix('SIG')}", handle, check=False)

    def stop(self, handle: str, grace_s: float) -> Exit:
        if self.describe(handle).pending:  # no process there to end by itself
            grace_s = 0.0
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self._call("scancel", handle, check=False)
            time.sleep(_POLL_S)
        return ended

    def _queued(self, handle: str) -> tuple[str, str]:
        """The job's state, and on which nodes it is or why on none; nothing when Slurm knows no such job."""
        try:
            shown = self._call("squeue", "--noheader", f"--jobs={handle}", "--format=%T %R")
        except Unavailable as error:
            if "Invalid job id" in error.message:
                return "", ""
            raise
        state, _, where = shown.strip().partition(" ")
        return state, where if where.startswith("(") or not where else f"on {where}"

    def _call(self, *command: str, stdin: str = "", env: Mapping[str, str] | None = None, check: bool = True) -> str:
        return ask_program(command, command[0], _TIMEOUT_S, stdin=stdin, env=env or {}, check=check)


def _quoted(value: str) -> str:
    """sbatch reads its lines like a shell's words, but knows only double quotes for certain."""
    return f'"{value}"' if re.search(r"\s", value) else value

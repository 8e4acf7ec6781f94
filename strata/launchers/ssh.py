"""Programs on another host over the system's own ssh: the user's config, keys, agents and jump hosts apply. Secrets go
through stdin, never into a command line; the program outlives the connection.
"""

import shlex
import signal
import subprocess
import time

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import Exit, LaunchSpec

__all__ = ["SshLauncher"]

_POLL_S = 0.2
_TIMEOUT_S = 30.0
_SSH_FAILED = 255
# $1 pid, $2 start time: succeeds while that very process runs.
_ALIVE = 'set -- $(cut -d")" -f2- /proc/$PID/stat 2>/dev/null); [ "${20}" = "$START" ] && [ "$1" != Z ]'


class SshLauncher:
    """A handle is host, pid and start time. Exit codes are not known: the program is not our child."""

    def __init__(self, host: str, *, ssh_config: str | None = None) -> None:
        self._host = host
        config = ["-F", ssh_config] if ssh_config else []
        self._ssh = ("ssh", *config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, "sh", "-s")

    def prepare(self, spec: LaunchSpec) -> None:
        program = shlex.quote(spec.argv[0])
        if self._run(f"command -v {program} >/dev/null", check=False):
            raise InvalidArgument(f"the program {spec.argv[0]!r} does not exist on {self._host}")

    def start(self, spec: LaunchSpec) -> str:
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in spec.env.items())
        folder = shlex.quote(spec.working_dir or ".")
        log = shlex.quote(str(spec.stdout)) if spec.stdout else "/dev/null"
        script = (
            f"mkdir -p {folder} && cd {folder} || exit 9\n"
            f"{exports}export STRATA_INCARNATION={shlex.quote(spec.tag)}\n"
            f"setsid {shlex.join(spec.argv)} </dev/null >>{log} 2>&1 &\n"
            'PID=$!\nSTART=$(cut -d")" -f2- /proc/$PID/stat | cut -d" " -f21)\necho "$PID:$START"\n'
        )
        return f"{self._host}:{self._output(script).strip()}"

    def poll(self, handle: str) -> Exit | None:
        script = self._about(handle) + _ALIVE
        return Exit(code=None, reason=f"it is gone from {self._host}") if self._run(script, check=False) else None

    def signal(self, handle: str, number: int) -> None:
        self._run(self._about(handle) + f"{{ {_ALIVE}; }} || exit 0\nkill -s {int(number)} -- -$PID", check=True)

    def stop(self, handle: str, grace_s: float) -> Exit:
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self.signal(handle, signal.SIGKILL)
            time.sleep(_POLL_S)
        return ended

    def adopt(self, tag: str) -> str | None:
        wanted = shlex.quote(f"STRATA_INCARNATION={tag}")
        script = (
            "for d in /proc/[0-9]*; do\n"
            f'  if tr "\\0" "\\n" <$d/environ 2>/dev/null | grep -qxF {wanted}; then\n'
            '    PID=${d#/proc/}; set -- $(cut -d")" -f2- $d/stat)\n'
            '    [ "$4" = "$PID" ] && echo "$PID:${20}" && exit 0\n'
            "  fi\ndone 2>/dev/null; exit 0\n"
        )
        found = self._output(script).strip()
        return f"{self._host}:{found}" if found else None

    def _about(self, handle: str) -> str:
        _, pid, start = handle.rsplit(":", 2)
        return f"PID={int(pid)} START={int(start)}\n"

    def _output(self, script: str) -> str:
        done = self._call(script)
        if done.returncode:
            raise Unavailable(f"{self._host} refused: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done.stdout.decode()

    def _run(self, script: str, *, check: bool) -> int:
        done = self._call(script)
        if check and done.returncode:
            raise Unavailable(f"{self._host} refused: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done.returncode

    def _call(self, script: str) -> "subprocess.CompletedProcess[bytes]":
        try:
            done = subprocess.run(
                self._ssh, input=script.encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"ssh to {self._host} failed: {error}") from None
        if done.returncode == _SSH_FAILED:
            raise Unavailable(f"ssh to {self._host} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done

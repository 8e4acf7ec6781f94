"""Programs on other hosts over the system's own ssh: the user's config, keys, agents and jump hosts apply. Secrets go
through stdin, never into a command line; the program outlives the connection.
"""

import shlex
import signal
import subprocess
import time
from collections.abc import Sequence

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import Exit, LaunchSpec, Standing

__all__ = ["SshLauncher"]

_POLL_S = 0.2
_TIMEOUT_S = 30.0
_SSH_FAILED = 255
# $1 pid, $2 start time: succeeds while that very process runs.
_ALIVE = 'set -- $(cut -d")" -f2- /proc/$PID/stat 2>/dev/null); [ "${20}" = "$START" ] && [ "$1" != Z ]'


class SshLauncher:
    """One copy per host. A handle is host, pid and start time of each, parted by spaces. Exit codes are not known: the
    programs are not our children."""

    def __init__(self, hosts: Sequence[str], *, ssh_config: str | None = None) -> None:
        self._hosts = tuple(hosts)
        self._options = ("-F", ssh_config) if ssh_config else ()
        for host in self._hosts:
            if not host or host.startswith("-") or any(sign in host for sign in " \t\n"):
                raise InvalidArgument(f"{host!r} is no host for ssh")

    def prepare(self, spec: LaunchSpec) -> None:
        if spec.copies != len(self._hosts):
            raise InvalidArgument(
                f"{spec.copies} copies were asked for on {len(self._hosts)} hosts: ssh starts one on each"
            )
        program = shlex.quote(spec.argv[0])
        for host in self._hosts:
            if self._run(host, f"command -v {program} >/dev/null"):
                raise InvalidArgument(f"the program {spec.argv[0]!r} does not exist on {host}")

    def start(self, spec: LaunchSpec) -> str:
        """On all hosts or, when one refuses, on none."""
        started: list[str] = []
        try:
            for number, host in enumerate(self._hosts):
                started.append(f"{host}:{self._output(host, _start_script(spec, number)).strip()}")
        except Unavailable:
            if started:
                self.stop(" ".join(started), 0.0)
            raise
        return " ".join(started)

    def poll(self, handle: str) -> Exit | None:
        """It runs while any of its copies does."""
        gone = [host for host, about in _parts(handle) if self._run(host, about + _ALIVE)]
        return Exit(code=None, reason=f"gone from {', '.join(gone)}") if len(gone) == len(handle.split()) else None

    def describe(self, handle: str) -> Standing:
        said = []
        for host, about in _parts(handle):
            try:
                said.append(f"{host}: {'gone' if self._run(host, about + _ALIVE) else 'runs'}")
            except Unavailable as error:
                said.append(str(error))
        return Standing(text=", ".join(said))

    def signal(self, handle: str, number: int) -> None:
        for host, about in _parts(handle):
            self._output(host, about + f"{{ {_ALIVE}; }} || exit 0\nkill -s {int(number)} -- -$PID")

    def stop(self, handle: str, grace_s: float) -> Exit:
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self.signal(handle, signal.SIGKILL)
            time.sleep(_POLL_S)
        return ended

    def _output(self, host: str, script: str) -> str:
        done = self._call(host, script)
        if done.returncode:
            raise Unavailable(f"{host} refused: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done.stdout.decode()

    def _run(self, host: str, script: str) -> int:
        return self._call(host, script).returncode

    def _call(self, host: str, script: str) -> "subprocess.CompletedProcess[bytes]":
        command = ("ssh", *self._options, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, "sh", "-s")
        try:
            done = subprocess.run(
                command,
                input=script.encode(),
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
                start_new_session=True,  # Ctrl-C in a terminal is for whoever asks, not for ssh
            )
        except FileNotFoundError:
            raise Unavailable("ssh is not installed here", hint="Install the OpenSSH client.") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"ssh to {host} failed: {error}") from None
        if done.returncode == _SSH_FAILED:
            raise Unavailable(
                f"ssh to {host} failed: {done.stderr.decode(errors='replace').strip()[-300:]}",
                hint=f"`ssh {host} true` must work without a password.",
            )
        return done


def _start_script(spec: LaunchSpec, number: int) -> str:
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in spec.env.items())
    folder = shlex.quote(spec.working_dir or ".")
    log = shlex.quote(str(spec.stdout)) if spec.stdout else "/dev/null"
    return (
        f"mkdir -p {folder} && cd {folder} || exit 9\n"
        f"{exports}export STRATA_INCARNATION={shlex.quote(spec.tag)} STRATA_AGENT_NUMBER={number}\n"
        f"setsid {shlex.join(spec.argv)} </dev/null >>{log} 2>&1 &\n"
        'PID=$!\nSTART=$(cut -d")" -f2- /proc/$PID/stat | cut -d" " -f21)\necho "$PID:$START"\n'
    )


def _parts(handle: str) -> list[tuple[str, str]]:
    """Each copy's host, and its pid and start time as a script's variables."""
    parts = [part.rsplit(":", 2) for part in handle.split()]
    return [(host, f"PID={int(pid)} START={int(start)}\n") for host, pid, start in parts]

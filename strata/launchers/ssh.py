"""Programs on other hosts over the system's own ssh: the user's config, keys, agents and jump hosts apply. One
connection per host serves all calls. Secrets go through stdin, never into a command line; the program outlives the
connection.
"""

import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import Exit, LaunchSpec, Standing

__all__ = ["SshLauncher"]

_T = TypeVar("_T")
_R = TypeVar("_R")

_POLL_S = 0.2
_TIMEOUT_S = 30.0
_PERSIST_S = 15  # longer than the pause between two looks at agents
_AT_ONCE = 16
_MAX_FOLDER = 40  # characters: the path of a socket has 108, of which ssh wants 58
_SSH_FAILED = 255
# $1 pid, $2 start time: succeeds while that very process runs.
_ALIVE = 'set -- $(cut -d")" -f2- /proc/$PID/stat 2>/dev/null); [ "${20}" = "$START" ] && [ "$1" != Z ]'


class SshLauncher:
    """One copy per host. A handle is host, pid and start time of each, parted by spaces. Exit codes are not known: the
    programs are not our children."""

    def __init__(self, hosts: Sequence[str], *, ssh_config: str | None = None) -> None:
        self._hosts = tuple(hosts)
        for host in self._hosts:
            if not host or host.startswith("-") or any(sign in host for sign in " \t\n"):
                raise InvalidArgument(f"{host!r} is no host for ssh")
        sockets = tempfile.mkdtemp(prefix="strata-ssh-")  # of the connections: for this user alone
        weakref.finalize(self, shutil.rmtree, sockets, ignore_errors=True)
        shared = ("ControlMaster=auto", f"ControlPath={sockets}/%C", f"ControlPersist={_PERSIST_S}")
        options = ("BatchMode=yes", "ConnectTimeout=10", *(shared if len(sockets) <= _MAX_FOLDER else ()))
        given = ("-F", ssh_config) if ssh_config else ()
        self._command = ("ssh", *given, *(word for option in options for word in ("-o", option)))

    def prepare(self, spec: LaunchSpec) -> None:
        if spec.copies != len(self._hosts):
            raise InvalidArgument(
                f"{spec.copies} copies were asked for on {len(self._hosts)} hosts: ssh starts one on each"
            )
        program = shlex.quote(spec.argv[0])
        missing = self._each(self._hosts, lambda host: self._run(host, f"command -v {program} >/dev/null"))
        lacking = [host for host, code in zip(self._hosts, missing, strict=True) if code]
        if lacking:
            raise InvalidArgument(f"the program {spec.argv[0]!r} does not exist on {', '.join(lacking)}")

    def start(self, spec: LaunchSpec) -> str:
        """On all hosts or, when one refuses, on none."""
        started: list[str] = []

        def start(copy: tuple[int, str]) -> None:
            number, host = copy
            started.append(f"{host}:{self._output(host, _start_script(spec, number)).strip()}")

        try:
            self._each(enumerate(self._hosts), start)
        except Unavailable:
            if started:
                self.stop(" ".join(started), 0.0)
            raise
        return " ".join(started)

    def poll(self, handle: str) -> Exit | None:
        """It runs while any of its copies does."""
        parts = _parts(handle)
        if not all(self._each(parts, lambda part: self._run(part[0], part[1] + _ALIVE))):
            return None
        return Exit(code=None, reason=f"gone from {', '.join(host for host, _ in parts)}")

    def describe(self, handle: str) -> Standing:
        def say(part: tuple[str, str]) -> str:
            host, about = part
            try:
                return f"{host}: {'gone' if self._run(host, about + _ALIVE) else 'runs'}"
            except Unavailable as error:
                return str(error)

        return Standing(text=", ".join(self._each(_parts(handle), say)))

    def signal(self, handle: str, number: int) -> None:
        kill = f"{{ {_ALIVE}; }} || exit 0\nkill -s {int(number)} -- -$PID"
        self._each(_parts(handle), lambda part: self._output(part[0], part[1] + kill))

    def stop(self, handle: str, grace_s: float) -> Exit:
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self.signal(handle, signal.SIGKILL)
            time.sleep(_POLL_S)
        return ended

    def _each(self, items: Iterable[_T], function: Callable[[_T], _R]) -> list[_R]:
        """Of all items, many at once. When some fail, all were tried, and the error names each of them."""
        with ThreadPoolExecutor(_AT_ONCE, "strata-ssh") as pool:
            asked = [pool.submit(function, item) for item in items]
        failed = [error for future in asked if isinstance(error := future.exception(), Unavailable)]
        if len(failed) > 1:
            said = "; ".join(error.message for error in failed)
            raise Unavailable(f"{len(failed)} of {len(asked)} hosts failed: {said}", hint=failed[0].hint)
        return [future.result() for future in asked]

    def _output(self, host: str, script: str) -> str:
        code, output, said = self._call(host, script)
        if code:
            raise Unavailable(f"{host} refused: {said}")
        return output

    def _run(self, host: str, script: str) -> int:
        return self._call(host, script)[0]

    def _call(self, host: str, script: str) -> tuple[int, str, str]:
        """Exit code, output and the last of what was said on stderr. That is a file: the ssh that stays behind for the
        next call may hold it open, and a pipe would end with that one."""
        with tempfile.TemporaryFile() as errors:
            try:
                done = subprocess.run(
                    (*self._command, host, "sh", "-s"),
                    input=script.encode(),
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    timeout=_TIMEOUT_S,
                    check=False,
                    start_new_session=True,  # Ctrl-C in a terminal is for whoever asks, not for ssh
                )
            except FileNotFoundError:
                raise Unavailable("ssh is not installed here", hint="Install the OpenSSH client.") from None
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Unavailable(f"ssh to {host} failed: {error}") from None
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-300:]
        if done.returncode == _SSH_FAILED:
            raise Unavailable(
                f"ssh to {host} failed: {said}",
                hint=f"`ssh {host} true` must work without a password, from here and by this user.",
            )
        return done.returncode, done.stdout.decode(errors="replace"), said


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

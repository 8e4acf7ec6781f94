"""Fresh hosts on one machine: each a network namespace with a name, a home and an address of its own, joined by
cables to a bridge on which somebody may listen. Needs root, iproute2 and tcpdump.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.support.cable import Cable
from tests.support.waiting import eventually

__all__ = ["Host", "Site", "line_with"]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Host:
    """A place where commands are typed. Its user has an empty home and an empty working folder."""

    def __init__(self, name: str, space: str, address: str, folder: Path, cable: Cable) -> None:
        self.name, self.address, self.folder, self.cable = name, address, folder, cable
        self._space = space
        self._prefix = [
            "ip",
            "netns",
            "exec",
            space,
            "unshare",
            "--uts",
            "sh",
            "-c",
            f'hostname {name}; exec "$@"',
            "-",
        ]
        folder.mkdir()
        places = ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
        self._env = {
            **kept,
            **dict.fromkeys(places, str(folder)),
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, line: str, **environment: str) -> Path:
        """A command that goes on; the file with what it says."""
        said = self.folder / f"said-{len(self._running)}"
        with said.open("wb") as out:
            self._running.append(
                subprocess.Popen(
                    [*self._prefix, *line.split()],
                    cwd=self.folder,
                    env={**self._env, **environment},
                    stdout=out,
                    stderr=out,
                )
            )
        return said

    def run(self, line: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._prefix, *line.split()],
            cwd=self.folder,
            env={**self._env, **environment},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def pids(self) -> set[int]:
        """Of all that runs here."""
        listed = subprocess.run(["ip", "netns", "pids", self._space], check=True, capture_output=True, text=True)
        return set(map(int, listed.stdout.split()))

    def kill(self) -> None:
        """kill -9 of all that runs here. The kernel lives, and ends their connections."""
        _kill(self.pids())

    def kill_commands(self) -> None:
        """kill -9 of what was started by `start`; its ranks live."""
        _kill({process.pid for process in self._running})

    def stop(self) -> None:
        for process in reversed(self._running):
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.kill()  # ranks that a killed agent left behind


class Site:
    """Hosts on one bridge. `net` is the first part of their addresses, of IPv4 or IPv6."""

    def __init__(self, folder: Path, net: str) -> None:
        self._folder = folder
        self._net = net
        self._tag = f"sj{os.getpid() % 100_000}"
        self.hosts: list[Host] = []
        self._spaces: list[str] = []
        self._listener: subprocess.Popen[bytes] | None = None
        self.capture = folder / "capture.pcap"
        self.address = f"{net}.254"  # where hosts reach this machine itself, and it reaches them

    def __enter__(self) -> Self:
        _ip("link", "add", self._tag, "type", "bridge")
        if ":" not in self._net:
            _ip("addr", "add", f"{self.address}/24", "dev", self._tag)
        _ip("link", "set", self._tag, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for host in reversed(self.hosts):
            host.stop()
        self.stop_listening()
        for host in self.hosts:
            host.cable.close()
        for space in self._spaces:
            _ip("netns", "del", space)
        _ip("link", "del", self._tag)

    def host(self, name: str) -> Host:
        number = len(self.hosts) + 1
        space, here, there = f"{self._tag}-{name}", f"{self._tag}h{number}", f"{self._tag}p{number}"
        six = ":" in self._net
        address = f"{self._net}{':' if six else '.'}{number}"
        _ip("netns", "add", space)
        self._spaces.append(space)
        cable = Cable(here, there)
        _ip("link", "set", there, "netns", space)
        _ip("link", "set", here, "master", self._tag, "up")
        nodad = ["nodad"] if six else []
        _ip("-n", space, "addr", "add", f"{address}/{64 if six else 24}", "dev", there, *nodad)
        for device in (there, "lo"):
            _ip("-n", space, "link", "set", device, "up")
        self.hosts.append(Host(name, space, address, self._folder / name, cable))
        return self.hosts[-1]

    def listen(self) -> None:
        """Keeps every byte that goes over the bridge, those of the last second as well."""
        command = ["tcpdump", "-i", self._tag, "--immediate-mode", "-U", "-s", "0", "-Z", "root"]
        command += ["-w", str(self.capture)]
        self._listener = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self._listener.stderr is not None
        assert b"listening on" in self._listener.stderr.readline(), "tcpdump does not listen"

    def stop_listening(self) -> None:
        if self._listener is not None and self._listener.poll() is None:
            self._listener.terminate()
            self._listener.communicate(timeout=30)

    def packets(self, port: int) -> int:
        """How many were heard from or to this port."""
        command = ["tcpdump", "-nn", "-r", str(self.capture), f"tcp port {port}"]
        return len(subprocess.run(command, capture_output=True, check=True).stdout.splitlines())


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def line_with(said: Path, words: str) -> str:
    """The line of a command's output that holds these words, once it is there."""
    pattern = re.compile(rf"^\s*(.*{re.escape(words)}.*?)\s*$", re.MULTILINE)
    found = eventually(f"{words!r} in {said}", lambda: pattern.search(said.read_text()), within_s=120)
    return str(found[1])

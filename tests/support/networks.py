"""Hosts with a network each: agents in namespaces of their own, joined by a bridge, that can be cut off for good. Needs
root and iproute2.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.hosts import Hosts

__all__ = ["Networks", "lacking"]


def lacking() -> str:
    """Why there can be no such hosts here; empty when there can."""
    if os.geteuid():
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need iproute2"
    probe = subprocess.run(["ip", "netns", "add", f"strata-probe-{os.getpid()}"], capture_output=True, text=True)
    if probe.returncode:
        return f"no network namespace can be made: {probe.stderr.strip()}"
    _ip("netns", "del", f"strata-probe-{os.getpid()}")
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Networks(Hosts):
    """The coordinator is at the bridge, outside of all namespaces."""

    insecure = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._tag = f"st{os.getpid() % 100_000}"
        self._net = f"10.213.{os.getpid() % 250}"
        self._spaces: list[str] = []
        _ip("link", "add", self._tag, "type", "bridge")
        _ip("addr", "add", f"{self._net}.1/24", "dev", self._tag)
        _ip("link", "set", self._tag, "up")
        (folder / ".env").write_text(f"STRATA_HOST={self._net}.1\nSTRATA_INSECURE=1\n")

    @property
    def address(self) -> str:
        return f"{self._net}.1:{self._port}"

    def start_host(self, name: str, slots: int = 2, **environment: str) -> str:
        space, here, there = f"{self._tag}-{name}", f"{self._tag}{name}", f"{self._tag}{name}p"
        _ip("netns", "add", space)
        self._spaces.append(space)
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
        _ip("link", "set", here, "master", self._tag, "up")
        _ip("-n", space, "addr", "add", f"{self._net}.{len(self._spaces) + 1}/24", "dev", there)
        for device in (there, "lo"):
            _ip("-n", space, "link", "set", device, "up")
        return super().start_host(name, slots, STRATA_INSECURE="1", **environment)

    def prefix(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", f"{self._tag}-{name}"]

    def cut_off(self, name: str) -> None:
        """Nothing gets there or comes from there any more; nobody is told."""
        _ip("link", "set", f"{self._tag}{name}", "down")

    def close(self) -> None:
        super().close()
        for space in self._spaces:
            _ip("link", "del", space.replace("-", ""))  # a namespace lives as long as its last process
            _ip("netns", "del", space)
        _ip("link", "del", self._tag)

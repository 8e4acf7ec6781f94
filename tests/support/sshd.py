"""A real sshd on loopback with keys and a config of its own, for tests of what runs over ssh."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.nodes import wait_for
from tests.support.ports import free_ports

__all__ = ["sshd"]


@contextlib.contextmanager
def sshd(folder: Path) -> Iterator[Path]:
    """Yields an ssh_config in which the host `node` is this machine."""
    (port,) = free_ports(1)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"UsePAM no\nStrictModes no\nPidFile {folder}/pid\nPermitRootLogin yes\nPasswordAuthentication no\n"
    )
    public = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {' '.join(public)}\n")
    config = folder / "ssh_config"
    config.write_text(
        f"Host node twin\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  StrictHostKeyChecking yes\n"
    )
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    server = subprocess.Popen([program, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _listens(port), what="sshd")
        yield config
    finally:
        server.terminate()
        server.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return os.strerror(probe.connect_ex(("127.0.0.1", port))) == os.strerror(0)

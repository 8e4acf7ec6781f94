"""A real Slurm with two virtual nodes on this machine: munged, slurmctld and two slurmd, all in one folder."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.nodes import wait_for
from tests.support.ports import free_ports

__all__ = ["slurm"]

_CONFIG = """
ClusterName=strata
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
KillWait=10
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Yields the variables with which Slurm's commands find it."""
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    config = folder / "slurm.conf"
    config.write_text(_CONFIG.format(host=socket.gethostname(), folder=folder, ports=free_ports(3)))
    environment = {"SLURM_CONF": str(config)}
    everything = {**os.environ, **environment}
    munge = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munge += [f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
    commands = [munge, ["slurmctld", "-D", "-f", str(config)]]
    commands += [["slurmd", "-D", "-f", str(config), "-N", node] for node in ("n1", "n2")]
    with contextlib.ExitStack() as stack:
        for command in commands:
            stack.callback(_end, _start(command, everything))
            if command is munge:
                wait_for(lambda: (folder / "munge.socket").exists(), what="munged")
        wait_for(lambda: _idle(everything) == 2, 60, "two idle nodes")
        yield environment


def _start(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, start_new_session=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _idle(environment: dict[str, str]) -> int:
    shown = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%T"], capture_output=True, text=True, check=False, env=environment
    )
    return shown.stdout.split().count("idle")

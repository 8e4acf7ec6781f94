"""Systems that start agents elsewhere, for tests: a real sshd, a real Slurm, a real Ray head, and kubectl with a server
that stands for Kubernetes; each as the flags and the variables with which `strata run` uses it. `make test-launchers`
installs them."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.kube_api import kube_api
from tests.support.nodes import wait_for
from tests.support.ray_head import TOKEN, ray_head
from tests.support.run_command import leftovers
from tests.support.slurm import slurm
from tests.support.sshd import sshd

__all__ = ["SYSTEMS", "System", "need", "short_folder", "system"]

SYSTEMS = ("ssh", "slurm", "ray", "kubernetes")


class System(NamedTuple):
    """`flags` are for `strata run`, `environment` is for it and for the system's own commands."""

    flags: tuple[str, ...]
    environment: dict[str, str]


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make test-launchers)")


@contextlib.contextmanager
def short_folder(prefix: str) -> Iterator[Path]:
    """A socket's path must be short. Nothing that works in the folder is left behind."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    yield folder
    wait_for(lambda: not leftovers(folder), 120, f"the end of all that works in {folder}")
    shutil.rmtree(folder)


@contextlib.contextmanager
def system(name: str, *options: str) -> Iterator[System]:
    """The system of that name, with two nodes; `options` go to the launcher."""
    with short_folder(f"{name}-") as folder:
        flags = ["--launcher", name, "--nodes", "2"]
        with contextlib.ExitStack() as stack:
            environment: dict[str, str] = {}
            if name == "ssh":
                need("sshd", "ssh-keygen")
                flags += ["-o", "host=node,twin", "-o", f"ssh_config={stack.enter_context(sshd(folder))}"]
            elif name == "slurm":
                need("sbatch", "slurmctld", "slurmd", "munged")
                environment = stack.enter_context(slurm(folder))
            elif name == "kubernetes":  # whose pods are processes of this machine, and share its folders
                need("kubectl")
                _, config = stack.enter_context(kube_api(folder))
                given = ("image=strata", f"kubeconfig={config}", f"python={sys.executable}", "claim=shared")
                flags += [word for option in given for word in ("-o", option)]
            else:
                pytest.importorskip("ray", reason="ray is not installed (make test-launchers)")
                environment = {"RAY_AUTH_TOKEN": TOKEN}
                flags += ["-o", f"address={stack.enter_context(ray_head(folder))}"]
            for option in options:
                flags += ["-o", option]
            yield System(tuple(flags), environment)

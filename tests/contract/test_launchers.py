"""One suite over every launcher: a program is started, signalled and stopped, on this host, over a real sshd,
under a real Slurm, on a real Ray, and by kubectl against a server that stands for Kubernetes. All but the first need
`make test-launchers`, which installs them.
"""

import contextlib
import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from strata.errors import InvalidArgument
from strata.launchers.base import Launcher, LaunchSpec
from strata.launchers.fleet import open_launcher
from strata.launchers.kubernetes import KubernetesLauncher
from strata.types.tasks import LAUNCHERS
from tests.support.kube_api import kube_api
from tests.support.launchers import need, short_folder
from tests.support.nodes import wait_for
from tests.support.ray_head import TOKEN, ray_head
from tests.support.slurm import slurm
from tests.support.sshd import sshd

pytestmark = pytest.mark.timeout(1200)  # whole clusters, on a busy machine

_TAG = "CONTRACT_TAG"  # in the environment of the program and of its children
# Says that it is up; tells of a SIGUSR1; ends at SIGTERM.
_PROGRAM = 'trap "echo heard" USR1; trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done'


@contextlib.contextmanager
def _local() -> Iterator[Launcher]:
    yield open_launcher("local")


@contextlib.contextmanager
def _ssh() -> Iterator[Launcher]:
    need("sshd", "ssh-keygen")
    with tempfile.TemporaryDirectory() as folder, sshd(Path(folder)) as config:
        yield open_launcher("ssh", {"host": "node", "ssh_config": str(config)})


@contextlib.contextmanager
def _slurm() -> Iterator[Launcher]:
    need("sbatch", "slurmctld", "slurmd", "munged")
    with short_folder("slurm-") as folder, slurm(folder) as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        yield open_launcher("slurm", {"partition": "all"})


@contextlib.contextmanager
def _ray() -> Iterator[Launcher]:
    with short_folder("ray-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        patch.setenv("RAY_AUTH_MODE", "token")  # read once, by the import
        ray = pytest.importorskip("ray", reason="ray is not installed (make test-launchers)")
        with ray_head(folder) as address:
            try:
                yield open_launcher("ray", {"address": address})
            finally:
                ray.shutdown()


@contextlib.contextmanager
def _kubernetes() -> Iterator[Launcher]:
    need("kubectl")
    with tempfile.TemporaryDirectory() as folder, kube_api(Path(folder)) as (_, config):
        yield open_launcher("kubernetes", {"image": "strata", "kubeconfig": str(config)})


_MAKERS: dict[str, Callable[[], contextlib.AbstractContextManager[Launcher]]] = {
    "local": _local,
    "ssh": _ssh,
    "slurm": _slurm,
    "ray": _ray,
    "kubernetes": _kubernetes,
}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [] if name == "local" else [pytest.mark.launchers]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=_marks(name)) for name in _MAKERS])
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    with _MAKERS[request.param]() as made:
        yield made


@pytest.fixture
def spec(tmp_path: Path) -> LaunchSpec:
    tag = f"contract-{secrets.token_hex(4)}"
    return LaunchSpec(
        argv=("/bin/sh", "-c", _PROGRAM),
        tag=tag,
        env={**os.environ, _TAG: tag},
        working_dir=str(tmp_path),
        stdout=tmp_path / "out",
        stderr=tmp_path / "out",
    )


def _said(spec: LaunchSpec) -> str:
    """A launcher may add the number of the copy to the file's name."""
    return "".join(file.read_text() for file in Path(spec.working_dir).glob("out*"))


def _runs(spec: LaunchSpec) -> bool:
    """Every launcher of this suite starts on this host."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(_TAG) == spec.tag:
                return True
    return False


def _skip_unrun(launcher: Launcher, why: str) -> None:
    if isinstance(launcher, KubernetesLauncher):
        pytest.skip(why)


def _start(launcher: Launcher, spec: LaunchSpec) -> str:
    launcher.prepare(spec)
    handle = launcher.start(spec)
    wait_for(lambda: "up" in _said(spec), 240, "the program")
    return handle


def test_every_launcher_is_in_this_suite() -> None:
    assert set(_MAKERS) == set(LAUNCHERS)


def test_a_program_is_gone_when_stop_returns(launcher: Launcher, spec: LaunchSpec) -> None:
    handle = _start(launcher, spec)
    try:
        assert launcher.poll(handle) is None
        assert not launcher.describe(handle).pending
        assert _runs(spec)
    finally:
        launcher.stop(handle, 20.0)
    assert launcher.poll(handle) is not None
    wait_for(lambda: not _runs(spec), 120, "the end of its children")
    wait_for(lambda: "bye" in _said(spec), 120, "its last word")
    launcher.signal(handle, signal.SIGTERM)
    assert launcher.describe(handle).text


def test_a_signal_reaches_the_program(launcher: Launcher, spec: LaunchSpec) -> None:
    _skip_unrun(launcher, "kubectl exec needs the streams of a real API server, which is not here")
    handle = _start(launcher, spec)
    try:
        launcher.signal(handle, signal.SIGUSR1)
        wait_for(lambda: "heard" in _said(spec), 120, "the signal")
    finally:
        launcher.stop(handle, 20.0)


def test_a_program_that_ignores_sigterm_is_killed(launcher: Launcher, spec: LaunchSpec) -> None:
    deaf = replace(spec, argv=("/bin/sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.1; done'))
    handle = _start(launcher, deaf)
    launcher.stop(handle, 0.2)
    assert launcher.poll(handle) is not None
    wait_for(lambda: not _runs(spec), 120, "the end of its children")


def test_an_end_is_noticed(launcher: Launcher, spec: LaunchSpec) -> None:
    short = replace(spec, argv=("/bin/sh", "-c", "echo up; exit 3"))
    handle = _start(launcher, short)
    ended = wait_for(lambda: launcher.poll(handle), 240, "its end")
    assert ended.code in (3, None), "the code, or that nobody saw it"


def test_a_program_that_does_not_exist_is_refused_or_fails(launcher: Launcher, spec: LaunchSpec) -> None:
    """Who sees the host says so before the start; a scheduler finds out when it has a place."""
    absent = replace(spec, argv=("/nowhere/program",))
    try:
        launcher.prepare(absent)
    except InvalidArgument:
        return
    handle = launcher.start(absent)
    assert wait_for(lambda: launcher.poll(handle), 240, "its end").code != 0

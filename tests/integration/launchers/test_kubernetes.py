"""`strata run --launcher kubernetes` with a real kubectl, against a server that records what it is asked: what is sent,
what is said, and what becomes of pods that lose their place. There is no Kubernetes here."""

import sys
from pathlib import Path

import pytest

from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.hosts import STEPS, Hosts, finished_steps
from tests.support.kube_api import kube_api
from tests.support.launchers import need
from tests.support.nodes import wait_for

pytestmark = [pytest.mark.launchers, pytest.mark.timeout(1200)]  # whole clusters, on a busy machine


def _run(hosts: Hosts, config: Path, *flags: str, pause_s: float = 0.05) -> tuple[int, str, str]:
    script = hosts.data_dir.parent / "steps.py"
    script.write_text(STEPS)
    given = ("--launcher", "kubernetes", "-o", "image=strata", "-o", f"kubeconfig={config}", "-o", "python=python")
    arguments = (str(script), "100000", str(pause_s), str(script.parent))
    done = strata("run", "--detach", "--data-dir", str(hosts.data_dir), *given, *flags, *arguments)
    return done.returncode, done.stdout.strip(), done.stderr


def _begun(hosts: Hosts) -> int:
    """How many attempts have made steps."""
    lines = hosts.noted(0)
    return sum(line.startswith("from") for line in lines) if lines and lines[-1].isdecimal() else 0


def test_a_pod_that_loses_its_place_is_replaced_and_loses_no_step(tmp_path: Path) -> None:
    need("kubectl")
    with Hosts(tmp_path) as hosts, kube_api(tmp_path) as (api, config):
        hosts.start("coordinator")
        code, task_id, said = _run(hosts, config, "-o", f"python={sys.executable}")
        assert code == 0, said
        wait_for(lambda: len(hosts.noted(0)) > 20, 240, "steps")
        (pod,) = api.pods.values()
        pod.end(75.0)  # as a node that is drained does it
        wait_for(lambda: _begun(hosts) == 2, 240, "steps of the next attempt")
        hosts.tasks().stop(task_id)
        task = hosts.wait_task(task_id, timeout_s=120)
        assert (task.status, task.course.failures, task.course.losses) == (TaskStatus.STOPPED, 0, 0)
        assert finished_steps(hosts.noted(0)) == (2, [], [])
        wait_for(lambda: not api.pods, 120, "the end of the pods")
        (job,) = [item for (kind, _), item in api.objects.items() if kind == "jobs"]
        assert [item["type"] for item in job["status"]["conditions"]] == ["Complete"]
    created = [body["kind"] for method, _, body in api.requests if method == "POST"]
    assert created == ["Job", "Job", "Secret", "Service"], "the first one was a rehearsal"


def test_what_cannot_work_is_said_before_anything_is_created(tmp_path: Path) -> None:
    need("kubectl")
    with Hosts(tmp_path) as hosts, kube_api(tmp_path) as (api, config):
        hosts.start("coordinator")
        code, _, said = _run(hosts, config, "--workers", "2", "--nodes", "2")
        assert (code, "2 pods share no folder for checkpoints" in said, api.requests) == (1, True, [])
        config.write_text(config.read_text().replace(api.url, "http://127.0.0.1:1"))
        code, _, said = _run(hosts, config)
        assert code == 1
        assert "Kubernetes would not take the job" in said
        assert "kubectl config current-context" in said
        assert hosts.tasks().list() == []


def test_an_agent_that_refuses_to_work_ends_the_job(tmp_path: Path) -> None:
    need("kubectl")
    with Hosts(tmp_path) as hosts, kube_api(tmp_path) as (api, config):
        hosts.start("coordinator")
        code, task_id, said = _run(hosts, config, "-o", "python=/nowhere/python")
        assert code == 0, said

        def conditions() -> list[str]:
            found = [item["status"].get("conditions", []) for (kind, _), item in api.objects.items() if kind == "jobs"]
            return [item["message"] for items in found for item in items]

        (failed,) = wait_for(conditions, 120, "the end of the job")
        assert "failed with exit code 127" in failed
        hosts.tasks().stop(task_id)
        wait_for(lambda: not api.pods, 60, "the end of the pods")

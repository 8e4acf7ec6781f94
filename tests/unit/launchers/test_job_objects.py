"""What Kubernetes gets: valid by its own schemas, secrets in the Secret alone, Kueue's labels when asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from strata.launchers.base import LaunchSpec
from strata.launchers.fleet import FleetSpec, agent_spec
from strata.launchers.job_objects import PodOptions, job_name, job_objects, owned_objects

_VERSION = "1.31"


def _spec(folder: Path) -> LaunchSpec:
    fleet = FleetSpec(
        launcher="kubernetes",
        coordinator="head:50051",
        folder=folder,
        num_agents=3,
        slots_per_agent=8,
        token="s3cret",
        tag="run-a1b2c3",
        env={"STRATA_CA": "-----BEGIN CERTIFICATE-----\nx\n"},
    )
    return agent_spec(fleet)


def _check(item: dict[str, Any]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="make test-launchers installs it")
    kubernetes_validate.validate(item, _VERSION, strict=True)


@pytest.mark.launchers
@pytest.mark.parametrize(
    "options",
    [
        PodOptions(image="strata:1"),
        PodOptions(
            image="registry.example.com/strata:1",
            namespace="ml",
            queue="team-a",
            priority="high",
            gpus="4",
            memory="64Gi",
            claim="shared",
            service_account="trainer",
            pull_secret="pull",
        ),
    ],
)
def test_all_objects_are_valid(tmp_path: Path, options: PodOptions) -> None:
    for item in (job_objects(_spec(tmp_path), options), *owned_objects(_spec(tmp_path), options, "uid-1")):
        _check(item)


def test_secrets_are_in_the_secret_alone(tmp_path: Path) -> None:
    job = job_objects(_spec(tmp_path), PodOptions(image="i"))
    secret, service = owned_objects(_spec(tmp_path), PodOptions(image="i"), "uid-1")
    assert (secret["stringData"]["STRATA_TOKEN"], secret["stringData"]["STRATA_CA"][:5]) == ("s3cret", "-----")
    assert "s3cret" not in json.dumps([job, service])
    for item in (secret, service):
        assert item["metadata"]["ownerReferences"][0]["uid"] == "uid-1", "it goes with the job"


def test_an_agent_per_index_that_is_replaced_when_its_node_goes(tmp_path: Path) -> None:
    spec = job_objects(_spec(tmp_path), PodOptions(image="i"))["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Ignore", "Ignore", "FailJob"]
    assert spec["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "8"}
    assert "suspend" not in spec


def test_what_a_claim_holds_of_other_jobs_is_seen_under_its_path(tmp_path: Path) -> None:
    """A task that is resumed asks for the folder of its first job."""

    def mounted(options: PodOptions) -> str:
        (container,) = job_objects(_spec(tmp_path / "run-1"), options)["spec"]["template"]["spec"]["containers"]
        assert container["workingDir"] == container["volumeMounts"][0]["mountPath"]
        return str(container["workingDir"])

    assert mounted(PodOptions(image="i", claim="shared")) == str(tmp_path)
    assert mounted(PodOptions(image="i")) == str(tmp_path / "run-1")


def test_kueue_gets_its_labels_and_starts_the_job(tmp_path: Path) -> None:
    job = job_objects(_spec(tmp_path), PodOptions(image="i", queue="team-a", priority="high"))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "high"
    assert job["spec"]["suspend"] is True


def test_names_are_names_for_kubernetes() -> None:
    assert job_name("run-a1b2c3") == "strata-run-a1b2c3"
    assert job_name("Odd_Tag.") == "strata-odd-tag"

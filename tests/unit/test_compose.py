"""compose.yaml and Dockerfile: pinned images, no root, secrets asked for by name; `docker-compose config` is clean
where there is one. `make test-image` runs the Dockerfile's steps themselves.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # ships no types

from strata.config import SETTINGS, variables

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SECRETS = {"STRATA_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "CH_PASSWORD", "GRAFANA_PASSWORD"}


def test_it_has_the_dashboard_workers_clickhouse_a_bucket_and_who_watches_them() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"coordinator", "worker", "clickhouse", "s3", "prometheus", "grafana"}
    assert "127.0.0.1:3000:3000" in services["coordinator"]["ports"]
    assert services["coordinator"]["command"][0] == "up"
    assert services["worker"]["command"][0] == "agent"
    for name in ("worker", "clickhouse", "s3", "prometheus", "grafana"):
        assert services[name]["healthcheck"]["test"]
    assert "HEALTHCHECK" in DOCKERFILE, "the coordinator's is the image's own"


def test_every_file_that_is_mounted_is_there() -> None:
    mounted = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", [])]
    files = [volume.partition(":")[0] for volume in mounted if volume.startswith("./")]
    assert files
    for file in files:
        assert (ROOT / file).exists(), file


def test_every_setting_is_one_that_strata_knows() -> None:
    known = {name for field in SETTINGS for name in variables(field)}
    for service in ("coordinator", "worker"):
        assert set(COMPOSE["services"][service]["environment"]) <= known


def test_images_are_pinned_and_no_registry_is_named() -> None:
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    for image in images:
        name, _, tag = image.partition(":")
        assert re.match(r"v?\d+\.\d+", tag), f"{image} names no version"
        assert "." not in name.partition("/")[0], f"{image} names a registry"


def test_the_image_runs_without_root_and_without_node() -> None:
    runtime = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER strata$", runtime, re.MULTILINE)
    assert "npm" not in runtime


def test_secrets_come_from_the_environment_and_have_no_default() -> None:
    text = (ROOT / "compose.yaml").read_text()
    for name in SECRETS:
        assert f"${{{name}:?" in text
        assert f"${{{name}:-" not in text
    given = dict(line.split("=", 1) for line in (ROOT / "compose.env.example").read_text().splitlines() if "=" in line)
    assert set(given) == SECRETS


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_docker_compose_finds_no_fault(tmp_path: Path) -> None:
    command = ["docker-compose", "--env-file", "compose.env.example", "config", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "none").touch()
    command = ["docker-compose", "--env-file", str(tmp_path / "none"), "config", "-q"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert "in .env" in refused.stderr

"""The specification's settings, as a user sets them: variables, a `.env`, and what stops the start."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.cluster import Cluster, strata_each
from tests.support.waiting import eventually


def _strata(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "strata", *arguments]
    root = Path(__file__).resolve().parents[3]
    merged = {**os.environ, "PYTHONPATH": str(root), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=merged, cwd=folder, check=False)


def test_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    shown = json.loads(_strata(tmp_path, "config", "show", "--json").stdout)
    expected = {
        "http_port": 3000,
        "grpc_port": 50051,
        "coordinator_addr": "localhost:50051",
        "heartbeat_timeout": 30.0,
        "storage_backend": "local",
        "ch_host": None,
        "ch_port": 8123,
        "ch_protocol": "http",
        "ch_database": "training_observability",
        "ch_user": "default",
        "ch_password": "",
        "poll_interval_sec": 3.0,
    }
    assert {name: shown[name] for name in expected} == expected


def test_a_dotenv_is_read_and_its_secrets_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AWS_ACCESS_KEY_ID=AKIA\nAWS_SECRET_ACCESS_KEY=hush\nCH_PORT=8124\n")
    shown = _strata(tmp_path, "config", "show", CH_PORT="9000").stdout
    assert "AKIA" in shown
    assert ".env: AWS_ACCESS_KEY_ID" in " ".join(shown.split())
    assert "hush" not in shown
    assert "9000" in shown


def test_s3_without_a_bucket_stops_the_start_with_one_sentence(tmp_path: Path) -> None:
    folder = ("--data-dir", str(tmp_path / "data"))
    commands = [((name, *folder), {"STORAGE_BACKEND": "s3"}) for name in ("up", "coordinator", "agent")]
    for refused in strata_each(commands):
        assert refused.returncode != 0, refused.args
        said = refused.stdout + refused.stderr
        assert "STORAGE_BACKEND is s3 but CHECKPOINT_BUCKET is not set" in said
        assert "Set CHECKPOINT_BUCKET to the name of the bucket" in said
        assert "Traceback" not in said


@pytest.mark.slow
def test_a_rank_gets_the_settings_of_its_cluster_but_not_the_token(tmp_path: Path) -> None:
    """Wherever its own working folder is: it saves where `strata.toml` of the cluster says."""
    token = "t" * 40
    (tmp_path / ".env").write_text(f"STRATA_TOKEN={token}\nAWS_REGION=eu-north-1\n")
    (tmp_path / "strata.toml").write_text("checkpoint_bucket = '/shared/checkpoints'\naws_region = 'elsewhere'\n")
    (tmp_path / "work").mkdir()
    script = "import json, os; open('seen.json', 'w').write(json.dumps(dict(os.environ)))"
    body = {"name": "look", "worker_count": 1, "entrypoint": [sys.executable, "-c", script]}
    with Cluster(tmp_path / "data", cwd=tmp_path) as cluster:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        where = {"working_dir": str(tmp_path / "work")}
        request = Request(f"{cluster.endpoints['http']}/api/tasks", json.dumps(body | where).encode(), headers)
        with urlopen(request, timeout=60):
            seen = eventually("the rank's look", lambda: _json(tmp_path / "work" / "seen.json"), within_s=60)
    assert seen["STRATA_CHECKPOINT_BUCKET"] == "/shared/checkpoints"
    assert seen["AWS_REGION"] == "eu-north-1"
    assert "STRATA_AWS_REGION" not in seen
    assert token not in seen.values()


def _json(path: Path) -> dict[str, str] | None:
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]  # what the rank wrote
    except (FileNotFoundError, json.JSONDecodeError):
        return None

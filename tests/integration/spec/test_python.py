"""The specification's Python lines, word by word, against a real S3 server and a real cluster."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]

_ARCHITECTURE = """
model_state_bytes = b"weights"
from strata import DatasetRegistry, CheckpointManager

# Initialize the checkpoint manager targeting S3
ckpt_manager = CheckpointManager(path="s3://my-bucket/models", keep_count=5)

# Save state from within the training loop
ckpt_manager.save(model_state_bytes, step=5000, epoch=2)
for step in range(5001, 5008):
    ckpt_manager.save(model_state_bytes + str(step).encode(), step=step, epoch=2)
ckpt_manager.close()
print(sorted(info.step for info in ckpt_manager.list()))
"""

_RECOVERY = """
class Model:
    def load_state_dict(self, path): print("loads", path)
model = Model()
from dtruntime import CheckpointManager, TrainingOrchestrator

# Initialize manager pointing to your S3/Local storage
ckpt_manager = CheckpointManager(path="s3://my-bucket/models")

# Retrieve the latest valid checkpoint metadata
latest_info = ckpt_manager.get_latest()
if latest_info:
    print(f"Recovering from Epoch {latest_info.epoch}, Step {latest_info.step}")
    model.load_state_dict(latest_info.path)
"""


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    seaweed().make_bucket("my-bucket")
    seaweed().make_bucket("my-ml-checkpoints")
    return {
        "AWS_REGION": "us-west-2",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": seaweed().endpoint_url,
    }


def _python(code: str, environment: dict[str, str], prefix: str) -> str:
    """Runs it as a script; `models` becomes a folder of this test's own."""
    merged = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", code.replace("my-bucket/models", f"my-bucket/{prefix}")]
    done = subprocess.run(command, env=merged, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_checkpoint_lines_of_the_architecture_page(environment: dict[str, str]) -> None:
    printed = _python(_ARCHITECTURE, environment, secrets.token_hex(4))
    assert printed.strip() == "[5003, 5004, 5005, 5006, 5007]"


def test_the_recovery_lines_of_the_troubleshooting_page(environment: dict[str, str]) -> None:
    prefix = secrets.token_hex(4)
    assert _python(_RECOVERY, environment, prefix) == "", "nothing is there yet, so there is nothing to recover"
    _python(_ARCHITECTURE, environment, prefix)
    said = _python(_RECOVERY, environment, prefix).splitlines()
    assert said == [
        "Recovering from Epoch 2, Step 5007",
        f"loads s3://my-bucket/{prefix}/step-000000005007",
    ]


@pytest.mark.slow
def test_a_task_saves_where_the_variables_say(environment: dict[str, str], tmp_path: Path) -> None:
    """STORAGE_BACKEND=s3, CHECKPOINT_BUCKET=my-ml-checkpoints, AWS_REGION=us-west-2."""
    script = tmp_path / "save.py"
    script.write_text("import strata\nrun = strata.init()\nrun.checkpoints().save(b'x', step=1)\nrun.finish()\n")
    variables = {"STORAGE_BACKEND": "s3", "CHECKPOINT_BUCKET": "my-ml-checkpoints", **environment}
    with Cluster(tmp_path / "data", "--slots", "2", environment=variables) as cluster:
        request = {"name": "save", "worker_count": 1, "entrypoint": [sys.executable, str(script)]}
        task_id = cluster.post("/api/tasks", request)["task_id"]
        saved = eventually(
            "the checkpoint",
            lambda: [one for one in cluster.get("/api/checkpoints") if one["status"] == "completed"],
            within_s=60,
        )
        assert saved[0]["path"] == f"s3://my-ml-checkpoints/{task_id}/step-000000000001"
        assert cluster.get("/api/status")["storage_backend"] == "s3"

"""The CI gate: every part runs although an earlier one failed, and the last line adds up what each pytest said."""

import os
import shutil
import subprocess
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # ships no types

ROOT = Path(__file__).resolve().parent.parent.parent
MAKEFILE = """\
check:
\t@echo '12 passed in 0.50s'; exit {code}
test-all:
\t@echo '==== 3 failed, 40 passed, 2 skipped, 7 deselected in 60.25s (0:01:00) ===='
test-torch:
\t@echo '==== 1 error in 0.25s ===='; echo 'Tests  99 passed'
"""


def gate(folder: Path, code: int) -> subprocess.CompletedProcess[str]:
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    (folder / "Makefile").write_text(MAKEFILE.format(code=code))
    env = {"PATH": os.environ["PATH"]}
    return subprocess.run([folder / ".ci" / "run"], env=env, capture_output=True, text=True, check=False)


def test_the_closing_line_adds_up_every_pytest(tmp_path: Path) -> None:
    done = gate(tmp_path, 0)
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1].strip("= ")
    assert last == "3 failed, 1 errors, 52 passed, 2 skipped in 61.00s"


def test_a_failing_part_fails_the_gate_but_stops_nothing(tmp_path: Path) -> None:
    done = gate(tmp_path, 1)
    assert done.returncode == 1
    assert "FAILED: check" in done.stderr
    assert "== make test-torch" in done.stdout


def test_the_workflow_of_a_public_host_runs_the_same_gate() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = workflow["jobs"]["gate"]["steps"]
    assert steps[-1]["run"] == ".ci/run"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert not [step["run"] for step in steps if "make " in step.get("run", "")], "what is run is decided in .ci/run"

"""`make setup` and the engine: built once per version, mended when damaged, and other packages of chDB go first."""

import shutil
import subprocess
import venv
from pathlib import Path

from tests.support.makers import offline, put_project, put_wheel

ROOT = Path(__file__).resolve().parents[3]


def test_the_old_package_goes_the_engine_comes_once_and_is_mended(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    makers = put_wheel(tmp_path / "links")
    put_project(tmp_path, makers)
    (tmp_path / "scripts").mkdir()
    shutil.copy2(ROOT / "scripts" / "engine.py", tmp_path / "scripts")
    venv.create(tmp_path / "clean", symlinks=True, with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    env = offline(tmp_path / "links")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", makers], env=env, check=True)

    def setup() -> str:
        done = subprocess.run([python, "scripts/engine.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    site = next((tmp_path / "clean").glob("lib/python*/site-packages"))
    first = setup()
    assert "removing chdb-core-lite: the engine is strata-engine now" in first
    assert "setup: strata-engine 26.5.0" in first
    assert (site / "chdb" / "_chdb.abi3.so").exists()
    assert not list(site.glob("chdb_core_lite*"))
    assert setup() == "", "it is there"
    (site / "chdb" / "_chdb.abi3.so").unlink()
    assert setup() == "setup: strata-engine 26.5.0\n"
    assert (site / "chdb" / "_chdb.abi3.so").exists()
    makers.unlink()
    (site / "chdb" / "__init__.py").unlink()
    done = subprocess.run([python, "scripts/engine.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "strata-engine was not built: pip's index has no wheel" in done.stderr

"""The Makefile where a newcomer may stumble: no Python, no chromium, not root. Programs on PATH are stand-ins."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BASICS = ("make", "bash", "sh", "awk", "touch", "id")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the Makefile, and a PATH that holds nothing but what every system has."""
    (tmp_path / "bin").mkdir()
    for name in BASICS:
        found = shutil.which(name)
        assert found is not None, name
        (tmp_path / "bin" / name).symlink_to(found)
    (tmp_path / "engine").mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "engine/pyproject.toml", "engine/repack.py"):
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    path.chmod(0o755)


def make(folder: Path, *targets: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(folder / "bin"), "HOME": str(folder)} | more
    return subprocess.run(["make", *targets], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_without_arguments_it_explains_itself(folder: Path) -> None:
    shown = make(folder).stdout
    for target in ("run", "test", "test-all", "check", "bench", "fresh", "proto", "test-torch", "clean"):
        assert f"make {target} " in shown


def test_a_missing_python_is_one_clear_line(folder: Path) -> None:
    put_program(folder, "python3", "exit 1  # too old")
    done = make(folder, ".venv/.installed")
    assert done.returncode != 0
    assert "Python 3.11 or newer with its venv module was not found" in done.stderr
    assert not (folder / ".venv").exists()


def test_the_first_python_that_fits_is_taken(folder: Path) -> None:
    put_program(folder, "python3", "exit 1  # too old")
    put_program(folder, "python3.11", 'echo "$@" >> calls; [ "$1" != --version ] || echo Python 3.11.7')
    done = make(folder, ".venv/.installed")
    assert "virtualenv of Python 3.11.7" in done.stdout
    assert "-m venv .venv" in (folder / "calls").read_text()


def test_root_gets_chromium_from_apt_after_an_update(folder: Path) -> None:
    put_program(folder, "id", "echo 0")
    put_program(folder, "apt-get", 'echo "$@" >> calls')
    assert make(folder, "browser").returncode == 0
    update, install = (folder / "calls").read_text().splitlines()
    assert update.endswith("update")
    assert "DPkg::Lock::Timeout=300" in install
    assert install.endswith("--no-install-recommends chromium fonts-dejavu-core")


def test_others_are_told_the_one_line_to_run(folder: Path) -> None:
    put_program(folder, "id", "echo 1000")
    put_program(folder, "apt-get", "touch called")
    done = make(folder, "browser")
    assert done.returncode != 0
    assert "sudo apt-get install -y --no-install-recommends chromium fonts-dejavu-core" in done.stderr
    assert not (folder / "called").exists()


def test_a_chromium_that_is_there_is_left_alone(folder: Path) -> None:
    put_program(folder, "chromium", "")
    assert make(folder, "browser").returncode == 0


def test_torch_tests_that_do_not_exist_yet_are_no_failure(folder: Path) -> None:
    """pytest says 5 when it selected nothing; any other code must come through."""
    for name, script in (("pip", "exit 0"), ("pytest", "exit $CODE"), ("python", "exit 0")):
        (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        put_program(folder, f"../.venv/bin/{name}", script)
    (folder / ".venv" / ".installed").touch()
    for code, expected in (("0", 0), ("5", 0), ("1", 2)):
        done = make(folder, "test-torch", CODE=code)
        assert done.returncode == expected, (code, done.stderr)

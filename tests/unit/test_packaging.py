"""What is shipped: the wheel carries the dashboard and needs no Node, and the pins name no registry."""

import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md", "strata", "dtruntime", "proto")
NO_NODE = {"PATH": "/nonexistent", "HOME": "/nonexistent"}
INDEX = "strata/observatory/web/index.html"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what an sdist holds, without a built dashboard: this one's is stood in for by each test."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "web"))
        else:
            shutil.copy2(source, copy / name)
    return copy


def pack(tree: Path, target: str = "wheel", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tree.parent / "dist")]
    return subprocess.run(command, cwd=tree, env=NO_NODE | env, capture_output=True, text=True, check=False)


def wheel(tree: Path) -> Path:
    return next((tree.parent / "dist").glob("*.whl"))


def put_bundle(tree: Path) -> None:
    (tree / INDEX).parent.mkdir()
    (tree / INDEX).write_text("<html>built</html>")


def put_sources(tree: Path, body: str) -> None:
    (tree / "dashboard").mkdir()
    (tree / "dashboard" / "build.py").write_text(f"def build(out_dir):\n    {body}\n")


def test_a_wheel_from_an_sdist_keeps_the_bundle_and_needs_no_node(tree: Path) -> None:
    put_bundle(tree)
    assert pack(tree, STRATA_REQUIRE_WEB="1").returncode == 0
    with zipfile.ZipFile(wheel(tree)) as archive:
        assert archive.read(INDEX) == b"<html>built</html>"
        assert "strata/py.typed" in archive.namelist()
        assert "dtruntime/__init__.py" in archive.namelist()


def test_where_the_sources_are_the_bundle_is_built(tree: Path) -> None:
    put_sources(tree, "out_dir.mkdir(); (out_dir / 'index.html').write_text('fresh')")
    assert pack(tree).returncode == 0
    with zipfile.ZipFile(wheel(tree)) as archive:
        assert archive.read(INDEX) == b"fresh"


def test_without_npm_the_wheel_is_packed_and_says_what_it_lacks(tree: Path) -> None:
    put_sources(tree, "raise RuntimeError('npm was not found')")
    done = pack(tree)
    assert done.returncode == 0
    assert "packed WITHOUT its dashboard (the API still works): npm was not found" in done.stderr
    with zipfile.ZipFile(wheel(tree)) as archive:
        assert INDEX not in archive.namelist()


def test_a_release_refuses_to_ship_without_its_dashboard(tree: Path) -> None:
    done = pack(tree, STRATA_REQUIRE_WEB="1")
    assert done.returncode != 0
    assert "the dashboard was not built: neither the built dashboard nor its sources are here" in done.stderr


def test_the_sdist_carries_bundle_and_protos_but_no_tests_or_sources(tree: Path) -> None:
    put_bundle(tree)
    (tree / "tests").mkdir()
    (tree / "tests" / "test_x.py").write_text("")
    assert pack(tree, "sdist").returncode == 0
    archive = next((tree.parent / "dist").glob("*.tar.gz"))
    names = subprocess.run(["tar", "tzf", str(archive)], capture_output=True, text=True, check=True).stdout.split()
    inside = {name.partition("/")[2] for name in names}
    assert {INDEX, "proto/coordinator.proto", "hatch_build.py", "pyproject.toml"} <= inside
    assert not {name for name in inside if name.startswith(("tests/", "dashboard/"))}


@pytest.mark.slow
def test_strata_up_from_an_installed_wheel_serves_the_dashboard_without_node(tree: Path, tmp_path: Path) -> None:
    """Starts the whole product (some seconds): a clean virtualenv, our wheel, and dependencies borrowed from this one,
    to save the minute that pip would need. `make fresh` is the rehearsal with nothing borrowed."""
    put_bundle(tree)
    assert pack(tree).returncode == 0
    strata = install(wheel(tree), tmp_path / "clean")
    folder = tmp_path / "data"
    ports = ["--grpc-port", "0", "--http-port", "0", "--telemetry-port", "0"]
    command: list[str | Path] = [strata, "up", "--no-agent", "--data-dir", folder, *ports]
    with (tmp_path / "up.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=NO_NODE, stdout=log, stderr=log)
    try:
        page = wait_for_page(process, folder / "endpoints.json", tmp_path / "up.log")
        assert page == b"<html>built</html>"
    finally:
        process.terminate()
        code = process.wait(30)
    assert code == 0, (tmp_path / "up.log").read_text()


def install(package: Path, clean: Path) -> Path:
    """The `strata` command of a new virtualenv that holds this wheel."""
    venv.create(clean, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(clean / "bin" / "python"), "install", "-q"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(package)], check=True, cwd=clean)
    borrowed = next(path for path in map(Path, sys.path) if (path / "grpc").is_dir())
    site = next(clean.glob("lib/python*/site-packages"))
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    code = "import strata; print(strata.__file__)"
    shown = subprocess.run([clean / "bin" / "python", "-I", "-c", code], capture_output=True, text=True, check=True)
    assert Path(shown.stdout.strip()).is_relative_to(clean), "the test must run the wheel, not this work tree"
    return clean / "bin" / "strata"


def wait_for_page(process: subprocess.Popen[bytes], endpoints: Path, log: Path) -> bytes:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        if endpoints.exists():
            return httpx.get(json.loads(endpoints.read_text())["http"], timeout=60).content
        time.sleep(0.05)
    pytest.fail(f"no endpoints within 60 s: {log.read_text()}")


def test_pins_name_versions_and_no_registry() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.!+]+", pin)] == []
    assert not [pin for pin in pins if pin.startswith(("torch==", "strata-", "pandas=="))]


def test_the_npm_lock_names_no_registry() -> None:
    text = (ROOT / "dashboard" / "package-lock.json").read_text(encoding="utf-8")
    lock = json.loads(text)
    assert '"resolved"' not in text
    assert lock["packages"], "an empty lock would prove nothing"
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "dashboard" / ".npmrc").read_text(encoding="utf-8")


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["server"], *extras["dev"], *extras["data"], *extras["s3"]]
    names = {re.split(r"[\[<>=!~ ]", requirement)[0].lower() for requirement in wanted} - {
        "strata-engine",
        "strata-runtime",
    }
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    assert names - {name.replace("_", "-") for name in pinned} == set()

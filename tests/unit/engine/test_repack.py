"""The engine's project, through pip and without a network: the makers' files under our name, asking for nothing."""

import base64
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.makers import FILES, TAGS, offline, put_project, put_wheel
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[3]
INFO = "strata_engine-26.5.0.dist-info"
PIP = [sys.executable, "-m", "pip"]


@dataclass(frozen=True)
class Place:
    folder: Path
    makers: Path
    project: Path

    def pip(self, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        env = offline(self.makers.parent) | more
        given = {name: value for name, value in env.items() if value}
        return subprocess.run([*PIP, *words], cwd=self.folder, env=given, capture_output=True, text=True, check=False)

    def build(self, source: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return self.pip("wheel", "--no-deps", "-w", "dist", source or self.project, **more)

    @property
    def wheel(self) -> Path:
        return next((self.folder / "dist").glob("*.whl"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "links").mkdir()
    makers = put_wheel(tmp_path / "links")
    return Place(tmp_path, makers, put_project(tmp_path, makers))


def test_the_makers_files_come_over_under_our_name(place: Place) -> None:
    done = place.build()
    assert done.returncode == 0, done.stderr
    assert place.wheel.name == place.makers.name.replace("chdb_core_lite", "strata_engine")
    with zipfile.ZipFile(place.wheel) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist()}
        modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
    kept = {name: content for name, content in FILES.items() if name.startswith("chdb/") and "test_" not in name}
    assert {name: content for name, content in inside.items() if name.startswith("chdb/")} == kept
    assert sorted(set(inside) - set(kept)) == [
        f"{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE.txt")
    ]
    assert (modes["chdb/_chdb.abi3.so"], modes["chdb/__init__.py"], modes[f"{INFO}/METADATA"]) == (
        0o100755,
        0o100644,
        0o100644,
    )
    told = Parser().parsestr(inside[f"{INFO}/METADATA"].decode())
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("strata-engine", "26.5.0", "Apache-2.0")
    assert (told.get_all("License-File"), told.get_all("Requires-Dist")) == (["LICENSE.txt"], None)
    assert inside[f"{INFO}/licenses/LICENSE.txt"] == b"Apache License\n"
    assert Parser().parsestr(inside[f"{INFO}/WHEEL"].decode()).get_all("Tag") == TAGS
    for name, written, size in csv.reader(io.StringIO(inside[f"{INFO}/RECORD"].decode())):
        content = inside.pop(name)
        if not name.endswith("/RECORD"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (written, size) == (f"sha256={digest}", str(len(content))), name
    assert inside == {}, "not in RECORD"


def test_pip_installs_it_and_finds_nothing_missing(place: Place) -> None:
    assert place.build().returncode == 0
    venv.create(place.folder / "clean", symlinks=True)
    python = place.folder / "clean" / "bin" / "python"
    done = place.pip("--python", python, "install", place.wheel)
    assert done.returncode == 0, done.stderr
    assert place.pip("--python", python, "check").stdout.strip() == "No broken requirements found."
    listed = json.loads(place.pip("--python", python, "list", "--format", "json").stdout)
    assert [one["name"] for one in listed] == ["strata-engine"]
    shown = subprocess.run(
        [python, "-c", "import chdb; print(chdb.engine)"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "made up\n"
    assert place.pip("--python", python, "uninstall", "-y", "strata-engine").returncode == 0
    assert not next((place.folder / "clean").glob("lib/python*/site-packages/chdb"), None), "RECORD names every file"


def test_a_version_is_resolved_without_the_download(place: Place) -> None:
    place.makers.unlink()
    done = place.pip("install", "--dry-run", "--ignore-installed", "-q", "--report", "-", place.project)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["install"]
    assert (found["metadata"]["name"], found["metadata"]["version"]) == ("strata-engine", "26.5.0")
    assert "requires_dist" not in found["metadata"]


def test_an_sdist_makes_the_same_wheel_and_is_small(place: Place) -> None:
    code = "import repack; print(repack.build_sdist('..'))"
    made = subprocess.run([sys.executable, "-c", code], cwd=place.project, capture_output=True, text=True, check=True)
    sdist = place.folder / made.stdout.strip()
    assert (sdist.name, sdist.stat().st_size < 20_000) == ("strata_engine-26.5.0.tar.gz", True)
    assert place.build().returncode == 0
    from_the_folder = place.wheel.read_bytes()
    place.wheel.unlink()
    shutil.rmtree(place.project)
    done = place.build(sdist)
    assert done.returncode == 0, done.stderr
    assert place.wheel.read_bytes() == from_the_folder


def test_a_change_of_the_repacking_alone_takes_the_same_wheel_of_the_makers(place: Place) -> None:
    told = (place.project / "pyproject.toml").read_text()
    (place.project / "pyproject.toml").write_text(told.replace('version = "26.5.0"', 'version = "26.5.0.post1"'))
    done = place.build()
    assert done.returncode == 0, done.stderr
    assert place.wheel.name.startswith("strata_engine-26.5.0.post1-cp39-abi3-")


def test_no_wheel_for_this_machine_is_one_sentence(place: Place) -> None:
    place.makers.rename(place.makers.with_name("chdb_core_lite-26.5.0-cp39-abi3-win_amd64.whl"))
    assert_refused(place.build(), "pip's index has no wheel of chdb-core-lite 26.5.0 for this machine (linux-")


def test_a_wheel_that_is_not_the_makers_is_refused(place: Place) -> None:
    put_wheel(place.makers.parent, FILES | {"chdb/__init__.py": b"import evil\n"})
    assert_refused(place.build(), "the wheel of chdb-core-lite 26.5.0 that pip was given is not its makers'")


def test_an_index_that_does_not_answer_is_not_taken_for_one_without_the_wheel(place: Place) -> None:
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}/simple"
    done = place.build(PIP_NO_INDEX="", PIP_FIND_LINKS="", PIP_INDEX_URL=nobody, PIP_RETRIES="1")
    assert_refused(done, "pip could not download chdb-core-lite 26.5.0")


@pytest.mark.parametrize("damage", ["no archive", "a damaged file", "no tags", "another license"])
def test_a_wheel_that_cannot_be_read_is_one_sentence(place: Place, damage: str) -> None:
    whole = dict(FILES)
    match damage:
        case "no archive":
            place.makers.write_bytes(b"<html>sign in first</html>")
        case "a damaged file":
            content = bytearray(place.makers.read_bytes())
            at = content.index(b"chdb/_chdb.abi3.so") + 100
            content[at : at + 8] = b"\xff" * 8
            place.makers.write_bytes(content)
        case "no tags":
            del whole["chdb_core_lite-26.5.0.dist-info/WHEEL"]
            put_wheel(place.makers.parent, whole)
        case _:
            whole["chdb_core_lite-26.5.0.dist-info/licenses/NOTICE"] = b""
            put_wheel(place.makers.parent, whole)
    put_project(place.folder, place.makers)
    wanted = "its license files are ['LICENSE.txt', 'NOTICE']" if damage == "another license" else "cannot be read"
    assert_refused(place.build(), wanted)


def assert_refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    said = done.stdout + done.stderr
    assert done.returncode != 0
    (told,) = [line for line in said.splitlines() if "strata-engine was not built: " in line]
    assert sentence in told, said
    assert "Traceback" not in said


def test_the_server_extra_asks_for_what_is_built_here() -> None:
    ours = tomllib.loads((ROOT / "engine" / "pyproject.toml").read_text())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = next(one for one in map(Requirement, extras["server"]) if one.name == ours["project"]["name"])
    assert wanted.specifier.contains(ours["project"]["version"])
    assert len(set(ours["tool"]["repack"]["hashes"])) == 2, "one for each platform that Strata runs on"

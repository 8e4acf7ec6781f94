"""`strata run --sync`: the script runs on other hosts in a copy of its folder, which no longer has to be there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.hosts import Hosts
from tests.support.nodes import wait_for

_TRAIN = """
import os, pathlib, sys, strata
import helper
run = strata.init()
here = pathlib.Path.cwd()
seen = f"{helper.WORD} {sys.argv[1]} {here.name} {pathlib.Path(__file__).parent == here}"
try:
    pathlib.Path(__file__).open("a").close()
    seen += " writable"
except OSError:
    pass
pathlib.Path(sys.argv[2], f"seen-{run.rank}").write_text(f"{seen}\\n{__file__}")
go = pathlib.Path(sys.argv[2], "go")
while not go.exists() and not run.should_stop():
    run.progress(1)
run.finish()
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        yield hosts


def _project(folder: Path, word: str) -> Path:
    source = folder / "project" / "src"
    source.mkdir(parents=True, exist_ok=True)
    (source / "train.py").write_text(_TRAIN)
    (source / "helper.py").write_text(f"WORD = {word!r}")
    return source


def _run(hosts: Hosts, source: Path, word: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(source)
    flags = ("--detach", "--data-dir", str(hosts.data_dir), "--sync", "..", "--workers", "2")
    done = strata("run", *flags, "train.py", word, str(hosts.data_dir.parent))
    assert done.returncode == 0, done.stderr
    assert "goes along" in done.stderr
    return done.stdout.strip()


def _seen(hosts: Hosts, rank: int) -> list[str]:
    path = hosts.data_dir.parent / f"seen-{rank}"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
def test_code_goes_along_and_is_fetched_once_per_host(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _project(tmp_path, "first")
    task_id = _run(hosts, source, "a", monkeypatch)
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(source.parent)
    hosts.start_host("one", slots=1)
    hosts.start_host("two", slots=1)
    wait_for(lambda: _seen(hosts, 0) and _seen(hosts, 1), 120, "both ranks")
    folders = set()
    for rank in range(2):
        words, file = _seen(hosts, rank)
        assert words.startswith("first a src True")
        folders.add(Path(file).parents[1])
    assert len({folder.name for folder in folders}) == 1, "the same hash on both hosts"
    assert {folder.parents[2].name for folder in folders} == {"one", "two"}
    for folder in folders:
        assert (folder / "src" / "train.py").stat().st_mode & 0o222 == 0
    (tmp_path / "go").touch()
    assert hosts.wait_task(task_id, timeout_s=120).status is TaskStatus.COMPLETED
    second = _run(hosts, _project(tmp_path, "second"), "b", monkeypatch)
    assert hosts.wait_task(second, timeout_s=120).status is TaskStatus.COMPLETED
    assert _seen(hosts, 0)[0].startswith("second b src True")
    assert len(list((hosts.host_dir("one") / "agent" / "code").iterdir())) == 2


@pytest.mark.slow
def test_code_that_was_damaged_on_the_way_is_not_run(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = _run(hosts, _project(tmp_path, "x"), "a", monkeypatch)
    (archive,) = (hosts.data_dir / "coordinator" / "code").iterdir()
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1] + b"?")
    hosts.start_host("one")
    wait_for(lambda: "has another hash" in hosts.task(task_id).reason, 60, "why it does not start")
    assert _seen(hosts, 0) == []
    archive.write_bytes(whole)
    (tmp_path / "go").touch()
    assert hosts.wait_task(task_id, timeout_s=120).status is TaskStatus.COMPLETED


def test_what_cannot_go_along_is_refused_before_anything_starts(hosts: Hosts, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "other").mkdir()
    outside = strata("run", "--detach", "--sync", str(tmp_path / "other"), str(tmp_path / "train.py"))
    assert "is not in" in outside.stderr
    missing = strata("run", "--detach", "--sync", str(tmp_path / "nowhere"), str(tmp_path / "train.py"))
    assert missing.returncode == outside.returncode == 1
    with pytest.raises(Exception, match="not kept here"):
        hosts.submit(name="t", entrypoint=("true",), code="0" * 64)
    with pytest.raises(Exception, match="is not inside the code"):
        hosts.submit(name="t", entrypoint=("true",), code="0" * 64, working_dir="../x")

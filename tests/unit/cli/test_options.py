"""An empty --data-dir is nobody's folder: every command refuses it, in a folder that stays as it is."""

from pathlib import Path

import pytest

from strata.cli.commands import LINES, load
from tests.support.cluster import strata_each

# What the command line needs beside the flag.
_WORDS = {
    "run": ["train.py"],
    "resume": ["task"],
    "fork": ["task"],
    "why": ["task"],
    "drain": ["host"],
    "import": ["points.csv"],
    "export": ["run", "points.csv"],
    "sql": ["SELECT 1"],
}
_BELOW = {"checkpoints": ["ls"], "token": ["list"], "state": ["dump"]}


def test_an_empty_data_folder_is_refused_by_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    named = [name for name in LINES if _takes_a_folder(name)]
    assert len(named) > 20
    commands: list[tuple[list[str], dict[str, str]]] = [
        ([name, *_BELOW.get(name, []), "--data-dir", "", *_WORDS.get(name, [])], {}) for name in named
    ]
    for done in strata_each(commands):
        assert done.returncode == 1, done.args
        assert "data_dir = '' is not valid: it is empty" in done.stderr + done.stdout, done.args
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_folder_whose_name_is_too_long_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    long = str(tmp_path / ("x" * 5_000))
    commands: list[tuple[list[str], dict[str, str]]] = [
        ([name, *_BELOW.get(name, []), "--data-dir", long, *_WORDS.get(name, [])], {})
        for name in ("tasks", "logs", "why", "doctor", "state", "up", "sync", "token")
    ]
    for done in strata_each(commands):
        assert done.returncode == 1, done.args
        said = " ".join((done.stderr + done.stdout).split())  # the doctor has a table
        assert "Traceback" not in said
        assert "File name too long" in said, done.args[:1]


def _takes_a_folder(name: str) -> bool:
    command = load(name)
    below = getattr(command, "commands", {}).values()
    return any("--data-dir" in one.opts for known in (command, *below) for one in known.params)

"""`strata --help` lists every command without loading one; what it lists is what the commands say of themselves."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import strata as strata_package
from strata.cli.commands import LINES, load
from tests.support.cluster import strata

PARTS = {f"strata.cli.{line.part}" for line in LINES.values()}
_LOADED = """
import json, sys
from strata.cli.main import run
try:
    run()
except SystemExit:
    pass
json.dump(sorted(sys.modules), sys.stderr)
"""


def loaded_by(*arguments: str) -> set[str]:
    """The modules of a `strata` command when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_the_first_paragraph_of_its_command(name: str) -> None:
    command = load(name)
    assert " ".join(command.help.split("\n\n")[0].split()) == LINES[name].says
    assert command.name == name


def test_help_loads_no_command_and_none_of_what_commands_need() -> None:
    loaded = loaded_by("--help")
    assert "strata.cli.commands" in loaded
    assert loaded & (PARTS | {"grpc", "numpy", "psutil", "pydantic", "strata.config"}) == set()


@pytest.mark.parametrize("arguments", [("runs", "--help"), ("token", "create", "--help")])
def test_a_command_loads_its_own_part_alone(arguments: tuple[str, ...]) -> None:
    assert loaded_by(*arguments) & PARTS == {f"strata.cli.{LINES[arguments[0]].part}"}


def test_help_lists_every_command_under_its_heading() -> None:
    shown = strata("--help", COLUMNS="200").stdout
    panels = {name: line.panel or "Commands" for name, line in LINES.items()}
    places = {panel: shown.index(f"─ {panel} ─") for panel in panels.values()}
    for name, panel in panels.items():
        at = shown.index(f"│ {name} ")
        assert max(places, key=lambda known: places[known] if places[known] < at else -1) == panel, name
    assert LINES["up"].says in shown


def test_a_word_that_is_no_command_gets_a_guess() -> None:
    done = strata("tokn")
    assert done.returncode == 2
    assert "No such command 'tokn'. Did you mean 'token'" in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [("strata dat", "datasets"), ("strata token cre", "create"), ("strata runs --data", "--data-dir")],
)
def test_a_shell_completes_commands_their_commands_and_their_flags(words: str, expected: str) -> None:
    asked = {"_STRATA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = Path(sys.executable).with_name("strata")  # by its name a shell knows whom to ask
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, check=True, env={**os.environ, **asked}
    )
    assert expected in done.stdout.split()


def test_a_terminal_that_knows_only_ascii_is_no_error(tmp_path: Path) -> None:
    done = strata("doctor", "--data-dir", str(tmp_path), PYTHONIOENCODING="ascii", STRATA_HTTP_PORT="0")
    assert "\\u2013" in done.stdout
    assert "Traceback" not in done.stderr


def test_every_command_that_a_sentence_of_ours_names_is_there() -> None:
    sources = "".join(file.read_text() for file in Path(strata_package.__file__).parent.rglob("*.py"))
    named = set(re.findall(r"`strata ([a-z]+)(?: ([a-z]+))?", sources))
    assert {command for command, _ in named} <= LINES.keys()
    for command, word in named:
        below = getattr(load(command), "commands", {})
        assert not below or not word or word in below, f"strata {command} {word}"


def test_an_empty_data_folder_is_not_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = strata("up", "--data-dir", "", COLUMNS="200")
    assert refused.returncode == 2
    assert "Invalid value for '--data-dir': it is empty; . is this folder" in refused.stderr
    assert list(tmp_path.iterdir()) == []

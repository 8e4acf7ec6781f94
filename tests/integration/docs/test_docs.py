"""The documentation tells the truth: its blocks run, its commands exist, its links lead somewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from strata.cli.commands import LINES, load
from strata.config import SETTINGS, variables
from tests.support.pages import PAGES, ROOT, Block, block, blocks, run

BLOCKS = [found for page in PAGES for found in blocks(page)]

# What a page leaves to its reader: a model, and data to train it on.
PRELUDE = """
import numpy as np
model = {"weights": np.zeros(4)}
def train_step(batch): return float(np.mean(batch["x"]))
def model_state(): return {"weights": np.zeros(4)}
def load_model(state): assert state["weights"].shape == (4,)
"""


PYTHON = [pytest.param(one.code, id=str(one)) for one in BLOCKS if one.language == "python" and not one.mark]


@pytest.mark.parametrize("code", PYTHON)
def test_python_in_the_docs_runs(tmp_path: Path, code: str) -> None:
    (tmp_path / "data").mkdir()
    pyarrow.parquet.write_table(pa.table({"x": [float(n) for n in range(512)]}), tmp_path / "data" / "part.parquet")
    (tmp_path / "example.py").write_text(PRELUDE + code)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_training_loop_runs_in_an_empty_folder_on_the_data_of_its_page(tmp_path: Path) -> None:
    loop, data = [one.code for one in blocks(ROOT / "docs/training.md") if one.language == "python" and not one.mark]
    for code in (data, loop):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert list((tmp_path / ".strata" / "checkpoints" / "demo").glob("step-*50"))


def test_there_is_python_to_run() -> None:
    assert len(PYTHON) >= 1


@pytest.mark.parametrize("one", BLOCKS, ids=str)
def test_every_block_is_run_by_a_test_or_says_why_not(one: Block) -> None:
    """The pictures of ARCHITECTURE.md and the tree claim nothing. Python without a mark is run above. What needs more
    than this machine names it."""
    if one.mark.startswith("no-run:"):
        assert len(one.mark) > len("no-run: "), "say what it needs"
        return
    is_picture = one.language == "text" and one.page in {"ARCHITECTURE.md", "docs/tree.md"}
    if is_picture or (one.language == "python" and not one.mark):
        return
    tests = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests").rglob("test_*.py")))
    wanted = f'run_blocks("{one.page}"' if one.mark == "server" else f'block("{one.page}", "{one.heading}")'
    assert wanted in tests, f"no test has {wanted}; if it cannot run here, mark its fence: ```bash no-run: <why>"


def test_the_toml_of_the_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "strata.toml").write_text(block("docs/configuration.md", "strata.toml"))
    shown = json.loads(run("strata config show --json", tmp_path, tmp_path / "data"))
    assert (shown["http_port"], shown["heartbeat_timeout"]) == (3000, 10.0)
    assert shown["task_types"] == {"finetune": ["python", "finetune.py"]}


@pytest.mark.parametrize("document", PAGES, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", PAGES, ids=lambda document: str(document.relative_to(ROOT)))
def test_files_that_are_named_exist(document: Path) -> None:
    paths = r"\b(?:tests|strata|benchmarks|examples|scripts|proto)/[\w/]+\.(?:py|proto)\b"
    named = re.findall(paths, document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


SHELL = [
    pytest.param(one.code, id=str(one))
    for one in BLOCKS
    if one.language in {"bash", "text"} and re.search(r"^(?:\w+=\S+ )*strata \w", one.code, re.MULTILINE)
]


@pytest.mark.parametrize("code", SHELL)
def test_every_command_of_the_docs_exists_with_its_flags(code: str) -> None:
    """Every `strata …` at the start of a line; flags before a script are the command's own."""
    named = re.findall(r"^(?:\w+=\S+ )*strata (\w+)(.*)$", code, re.MULTILINE)
    assert named
    for command, rest in named:
        assert command in LINES, command
        found = load(command)
        known = {option for parameter in found.params for option in parameter.opts}
        known |= {
            option for child in getattr(found, "commands", {}).values() for p in child.params for option in p.opts
        }
        own = re.split(r"\s\S+\.py\b", rest.partition("#")[0])[0]
        assert set(re.findall(r"(?<=\s)--[\w-]+", own)) <= known, own


def test_the_page_of_the_environment_names_every_setting() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    missing = [name for name in SETTINGS if not any(variable in page for variable in variables(name))]
    assert missing == []

"""The documentation tells the truth: its Python runs, its commands exist, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.main import get_command

from strata.cli.main import app
from strata.config import Settings, variables

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])

# What a page leaves to its reader: a model, and data to train it on.
PRELUDE = """
import numpy as np
def train_step(batch): return float(np.mean(batch["x"]))
def model_state(): return {"weights": np.zeros(4)}
def load_model(state): assert state["weights"].shape == (4,)
"""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


PYTHON = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python"))
]


@pytest.mark.parametrize("code", PYTHON)
def test_python_in_the_docs_runs(tmp_path: Path, code: str) -> None:
    (tmp_path / "data").mkdir()
    pyarrow.parquet.write_table(pa.table({"x": [float(n) for n in range(512)]}), tmp_path / "data" / "part.parquet")
    (tmp_path / "example.py").write_text(PRELUDE + code)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_there_is_python_to_run() -> None:
    assert len(PYTHON) >= 1


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
    pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```(?:bash|bash server)?\n(.*?)```", page.read_text(), re.DOTALL))
    if re.search(r"^(?:\w+=\S+ )*strata \w", code, re.MULTILINE)
]


@pytest.mark.parametrize("code", SHELL)
def test_every_command_of_the_docs_exists_with_its_flags(code: str) -> None:
    """Every `strata …` at the start of a line; flags before a script are the command's own."""
    groups = get_command(app).commands  # type: ignore[attr-defined]  # a group has them
    named = re.findall(r"^(?:\w+=\S+ )*strata (\w+)(.*)$", code, re.MULTILINE)
    assert named
    for command, rest in named:
        assert command in groups, command
        found = groups[command]
        known = {option for parameter in found.params for option in parameter.opts}
        known |= {
            option for child in getattr(found, "commands", {}).values() for p in child.params for option in p.opts
        }
        own = re.split(r"\s\S+\.py\b", rest.partition("#")[0])[0]
        assert set(re.findall(r"(?<=\s)--[\w-]+", own)) <= known, own


def test_the_configuration_page_names_every_setting() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    missing = [name for name in Settings.model_fields if not any(variable in page for variable in variables(name))]
    assert missing == []

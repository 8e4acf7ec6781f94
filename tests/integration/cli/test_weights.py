"""`strata checkpoints export` and `import`: a model goes out as a Hugging Face folder and comes back, by hand."""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from tests.support.cluster import strata
from tests.support.pages import block, run


def _saved(path: Path) -> dict[str, object]:
    state = {"model": {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(4, dtype=np.float32)}, "ema": {"a": np.zeros(2)}}
    with CheckpointManager(path, rank=0, world_size=1) as checkpoints:
        checkpoints.save(state, 1)
        checkpoints.save({**state, "model": {"a": np.zeros((2, 3)), "b": np.zeros(4, dtype=np.float32)}}, 2)
    return state


def _loaded(path: Path, step: int) -> dict[str, list[object]]:
    with CheckpointManager(path, rank=0, world_size=1) as checkpoints:
        model = checkpoints.load(step)["model"]
    return {name: np.asarray(value).tolist() for name, value in model.items()}


def test_a_model_goes_out_and_comes_back(tmp_path: Path) -> None:
    _saved(tmp_path / "run")
    done = strata("checkpoints", "export", str(tmp_path / "run"), str(tmp_path / "hf"), "--step", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 arrays of model, ")
    assert (tmp_path / "hf" / "model.safetensors").is_file()
    for source in (tmp_path / "hf", tmp_path / "hf" / "model.safetensors"):
        back = tmp_path / f"back-{source.suffix}"
        done = strata("checkpoints", "import", str(source), str(back), "--step", "3")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"step 3 in {back}: ")
        assert _loaded(back, 3) == _loaded(tmp_path / "run", 1)


def test_another_part_and_the_newest_step(tmp_path: Path) -> None:
    _saved(tmp_path / "run")
    done = strata("checkpoints", "export", str(tmp_path / "run"), str(tmp_path / "ema"), "--part", "ema")
    assert done.stdout.startswith("1 arrays of ema, "), done.stderr


@pytest.mark.slow
def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    _saved(tmp_path / "run")
    for arguments, said in (
        (("export", str(tmp_path / "run"), str(tmp_path / "x"), "--part", "head"), "It has: ema, model."),
        (("export", str(tmp_path / "run"), str(tmp_path / "x"), "--step", "9"), "9"),
        (("import", str(tmp_path / "nothing.pt"), str(tmp_path / "x")), f"there is no {tmp_path / 'nothing.pt'}"),
    ):
        done = strata("checkpoints", *arguments)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_page_by_hand(tmp_path: Path) -> None:
    saves = f"{shlex.quote(sys.executable)} -c {shlex.quote(block('docs/checkpoints.md', 'Save and load'))}"
    run(saves, tmp_path, tmp_path / "data")
    printed = run(block("docs/checkpoints.md", "By hand"), tmp_path, tmp_path / "data")
    assert printed.startswith("1 arrays, ")
    assert _loaded(tmp_path / "checkpoints" / "again", 0).keys() == {"weights"}

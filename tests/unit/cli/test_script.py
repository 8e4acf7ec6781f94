"""Whether a script saves what a change of size must not lose, and whether in the place that hosts must share."""

from pathlib import Path

import pytest

from strata.cli.script import check_saves, saves_at_home
from strata.errors import InvalidArgument


@pytest.mark.parametrize(
    "source",
    [
        "import strata\nrun = strata.init()\nwith run.checkpoints() as saved: ...",
        "from strata import CheckpointManager",
        "import strata\nwith strata.training(w=w, total=9) as job: ...",
        "from strata import training",
        "import strata as st\nwith st.training(w=w, total=9) as job: ...",
        "from strata import training as loop\nwith loop(w=w, total=9) as job: ...",
        "from strata import *\nwith training(w=w, total=9) as job: ...",
        "import torch\ntorch.save({}, 'x')",
        "import beside",
        "from package.inner import thing",
        "def broken(:",
    ],
)
def test_a_script_that_saves_may_change_its_size(tmp_path: Path, source: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("import beside, package\n")
    (tmp_path / "beside.py").write_text("def keep(run):\n    return run.checkpoints()\n")
    script = tmp_path / "train.py"
    script.write_text(source)
    check_saves(str(script))


@pytest.mark.parametrize(
    "source",
    [
        "print('checkpoints')",
        "import strata\nmodel.training = True",
        "import strata as st\nmodel.training = True\nst.init().log({})",
        "from strata import *\ninit()",
        "from other import training",
        "# save\nimport other, os.path",
        "from . import x",
        "",
    ],
)
def test_one_that_saves_nothing_may_not(tmp_path: Path, source: str) -> None:
    (tmp_path / "other.py").write_text("import train\nx = 1\n")
    script = tmp_path / "train.py"
    script.write_text(source)
    with pytest.raises(InvalidArgument, match="saves no checkpoint") as refused:
        check_saves(str(script))
    assert "--workers 4" in refused.value.hint


@pytest.mark.parametrize(
    ("source", "at_home"),
    [
        ("with strata.init().checkpoints() as saved: ...", True),
        ("with run.checkpoints(keep_count=3) as saved: ...", True),
        ("with strata.training(w=w, total=9) as job: ...", True),
        ("import beside", True),
        ("with run.checkpoints('/mnt/shared') as saved: ...", False),
        ("with run.checkpoints(path=where) as saved: ...", False),
        ("with run.checkpoints(**options) as saved: ...", False),
        ("with strata.training(w=w, path='s3://b/x') as job: ...", False),
        ("training()\nmodel.training(1)\ncheckpoints()", False),
        ("import torch\ntorch.save({}, 'x')", False),
        ("def broken(:", False),
        ("", False),
    ],
)
def test_only_what_is_sure_to_save_in_the_default_place_is_said_to(tmp_path: Path, source: str, at_home: bool) -> None:
    (tmp_path / "beside.py").write_text("def keep(run):\n    return run.checkpoints()\n")
    script = tmp_path / "train.py"
    script.write_text(f"import strata\n{source}")
    assert saves_at_home(str(script)) is at_home
    script.write_text(source)
    assert not saves_at_home(str(script)), "of another library"


def test_a_program_is_not_looked_into(tmp_path: Path) -> None:
    program = tmp_path / "train"
    program.write_text("run.checkpoints()")
    assert not saves_at_home(str(program))


@pytest.mark.parametrize(
    ("source", "at_home"),
    [
        ("from strata import training\nwith training(w=w, total=9) as job: ...", True),
        ("from strata import training as loop\nwith loop(w=w, total=9) as job: ...", True),
        ("from strata import *\nwith training(w=w, total=9) as job: ...", True),
        ("import strata as st\nwith st.training(w=w, total=9) as job: ...", True),
        ("from strata import training\nwith training(w=w, path=where) as job: ...", False),
        ("import strata as st\nst.init().log(training(1))", False),
    ],
)
def test_the_loop_is_known_by_whatever_name_it_was_imported(tmp_path: Path, source: str, at_home: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(source)
    assert saves_at_home(str(script)) is at_home

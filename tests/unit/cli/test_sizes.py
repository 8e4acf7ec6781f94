"""`--workers`: one number or two, and whether the script saves what a change of size must not lose."""

from pathlib import Path

import pytest

from strata.cli.sizes import Size, check_saves, parse_size
from strata.errors import InvalidArgument


def test_a_size_is_one_number_or_two() -> None:
    assert parse_size("4") == Size(4, 4)
    assert not parse_size("4").elastic
    assert parse_size("2..8") == Size(2, 8)
    assert parse_size("2..8").elastic


@pytest.mark.parametrize(
    "text", ["8..2", "0..4", "0", "2..", "..4", "a..b", "", "4.0", "-1", "2...4", "nan", "٣", "\udcff"]
)
def test_anything_else_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^--workers "):
        parse_size(text)


@pytest.mark.parametrize(
    "source",
    [
        "import strata\nrun = strata.init()\nwith run.checkpoints() as saved: ...",
        "from strata import CheckpointManager",
        "import strata\nwith strata.training(w=w, total=9) as job: ...",
        "from strata import training",
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

"""The embedded engine, in a process of its own, for it has one folder per process: answers in pieces."""

import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import sys
from strata.observatory.store.embedded import DatabaseError, Embedded
from strata.observatory.store.native import decode

engine = Embedded(sys.argv[1], {})
LONG = "SELECT number FROM numbers({count:UInt64}) SETTINGS max_block_size = 1000"
MANY, NONE = {"count": 20_000}, {"count": 0}
FAILING = "SELECT throwIf(number = 15000) FROM numbers(20000) SETTINGS max_block_size = 1000, max_threads = 1"
"""


def run(folder: Path, script: str) -> None:
    command = [sys.executable, "-c", _SCRIPT + script, str(folder / "engine")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_pieces_are_the_whole_answer(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
pieces = list(engine.pieces(LONG, MANY))
assert len(pieces) > 1
assert decode(*pieces)["number"].to_list() == list(range(20_000))
assert decode(*engine.pieces(LONG, NONE)).num_rows == 0
""",
    )


def test_a_question_that_fails_half_way_says_why_and_the_next_one_is_answered(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
for question in (FAILING, "SELECT no_such_column"):
    try:
        list(engine.pieces(question, {}))
    except DatabaseError as error:
        assert "Code: " in str(error)
    else:
        raise AssertionError(question)
    assert decode(engine.query(LONG, MANY)).num_rows == 20_000
""",
    )


def test_pieces_that_nobody_fetches_are_given_up(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
pieces = engine.pieces(LONG, MANY)
next(pieces)
pieces.close()
assert decode(*engine.pieces(LONG, MANY)).num_rows == decode(engine.query(LONG, MANY)).num_rows == 20_000
""",
    )


def test_it_needs_no_pyarrow_and_loads_none_that_is_there(tmp_path: Path) -> None:
    """Its package imports one at its start. Where there is none, a finder stands for that."""
    absent = """
import sys

class None_:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyarrow", "pandas"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, None_())
"""
    check = """
assert decode(engine.query(LONG, MANY)).num_rows == 20_000
assert not {"pyarrow", "pandas"} & set(sys.modules)
"""
    for before in ("", absent):
        command = [sys.executable, "-c", before + _SCRIPT + check, str(tmp_path / "engine")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

"""An id that nothing of ours can have is answered as one that is not known, before anybody is asked."""

import pytest

from strata.cli import ids
from strata.errors import NotFound, UnknownTask, UnknownWorker
from tests.support.cluster import strata_each

_NOBODYS = ["", "a/b", "\udcff", "..", "x" * 3_000, "two words"]
_COMMANDS = [
    ("logs", "--task"), ("logs", "--worker"), ("tasks", "stop"), ("tasks", "resume"), ("why",), ("resume",), ("fork",),
    ("drain",), ("sync",), ("token", "revoke"),
]  # fmt: skip


@pytest.mark.parametrize("given", _NOBODYS)
def test_what_no_name_can_be_is_unknown(given: str) -> None:
    checks = [
        (ids.task_id, UnknownTask),
        (ids.worker_id, UnknownWorker),
        (ids.run_id, NotFound),
        (ids.host_id, NotFound),
    ]
    for check, error in [*checks, (ids.token_id, NotFound)]:
        with pytest.raises(error, match="is known") as caught:
            check(given)
        assert len(caught.value.message) < 200
        assert "strata " in caught.value.hint


def test_names_and_nothing_pass() -> None:
    assert ids.task_id("train-1a2b.3_c") == "train-1a2b.3_c"
    assert ids.task_id(None) is None


def test_every_command_that_takes_an_id_says_so() -> None:
    """No cluster runs here: whoever asked one would say that."""
    given = [("", "a/b", "x" * 3_000)[place % 3] for place in range(len(_COMMANDS))]
    commands: list[tuple[list[str], dict[str, str]]] = [
        ([*command, one], {}) for command, one in zip(_COMMANDS, given, strict=True)
    ]
    for done in strata_each([*commands, (["export", "a/b", "points.csv"], {})]):
        assert (done.returncode, done.stdout) == (1, ""), done.args
        assert "is known" in done.stderr, done.args

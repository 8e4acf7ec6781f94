"""The command line is put together from its parts: all of them for help, the one that was asked for otherwise."""

import pytest
from typer.main import get_command

from strata.cli.main import PARTS, build


def commands(asked: str | None) -> set[str]:
    return set(get_command(build(asked)).commands)  # type: ignore[attr-defined]  # a group has them


def test_every_command_is_found_in_its_part() -> None:
    assert commands(None) == {command for part in PARTS.values() for command in part}
    for part in PARTS.values():
        assert all(commands(command) == set(part) for command in part)


@pytest.mark.parametrize("asked", ["ups", "lists", ""])
def test_a_word_that_is_no_command_gets_all_of_them(asked: str) -> None:
    assert commands(asked) == commands(None)

"""The tree at the top of errors.py is the real one, and every class keeps its word."""

import re
from http import HTTPStatus

import grpc
import pytest

from strata import errors
from strata.error_codes import error_types
from strata.errors import StrataError

DRAWN = re.compile(r"^ *[│├└─ ]*([A-Z]\w+)", re.MULTILINE)


def test_the_drawing_is_the_tree() -> None:
    assert errors.__doc__ is not None
    drawing = errors.__doc__.partition("\n\n")[2].rpartition("\n\n")[0]
    depths = [(len(line) - len(line.lstrip(" │├└─")), DRAWN.match(line)) for line in drawing.splitlines()]
    drawn = [(depth, match[1]) for depth, match in depths if match]
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for depth, name in drawn:
        while path and path[-1][0] >= depth:
            path.pop()
        parents[name] = path[-1][1] if path else ""
        path.append((depth, name))
    real = {cls.__name__: cls.__base__.__name__ for cls in error_types().values() if cls.__base__}
    assert parents == {**real, "StrataError": ""}


@pytest.mark.parametrize("cls", error_types().values(), ids=lambda cls: cls.code)
def test_every_class_has_a_code_a_status_and_a_word(cls: type[StrataError]) -> None:
    assert re.fullmatch(r"[a-z_]+", cls.code)
    assert cls.grpc_status in grpc.StatusCode.__members__
    assert isinstance(cls.http_status, HTTPStatus)
    assert cls.__doc__


def test_codes_are_unique() -> None:
    def count(cls: type[StrataError]) -> int:
        return 1 + sum(count(child) for child in cls.__subclasses__())

    assert len(error_types()) == count(StrataError)


def test_an_error_prints_its_message_and_carries_a_hint() -> None:
    error = errors.UnknownDataset("no dataset 'x'")
    assert str(error) == "no dataset 'x'"
    assert error.hint
    assert errors.UnknownDataset("m", hint="").hint == ""

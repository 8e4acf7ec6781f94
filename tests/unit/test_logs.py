"""Levels per part as in RUST_LOG, and the two styles of a line."""

import json
import logging
from collections.abc import Iterator

import pytest

from strata.errors import InvalidConfig
from strata.logs import parse_levels, set_up_logging


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    for part in ("strata", "strata.coordinator"):
        logging.getLogger(part).setLevel(logging.NOTSET)


def test_levels_of_the_specs_example() -> None:
    levels = parse_levels("coordinator=debug,storage=debug,runtime_core=info")
    assert levels == {"": logging.INFO, "coordinator": logging.DEBUG, "storage": logging.DEBUG, "runtime_core": 20}


def test_a_bare_level_is_for_everything() -> None:
    assert parse_levels("warn") == {"": logging.WARNING}
    assert parse_levels("") == {"": logging.INFO}


@pytest.mark.parametrize("directives", ["loud", "coordinator=", "=debug", "info,storage=verbose"])
def test_a_bad_directive_is_named(directives: str) -> None:
    with pytest.raises(InvalidConfig, match="is not valid") as refused:
        parse_levels(directives)
    assert "debug" in refused.value.hint


def test_json_lines_have_the_specs_fields(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("coordinator=debug,error", "json")
    logging.getLogger("strata.coordinator.rpc").debug("worker %s joined", "w-1")
    logging.getLogger("strata.storage").warning("not shown: everything else is at error")
    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert entry.pop("timestamp") > 0
    assert entry == {"level": "debug", "message": "worker w-1 joined", "source": "coordinator.rpc"}


def test_human_lines_name_the_part_and_carry_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("info", "human")
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("strata.coordinator.journal").exception("cannot write")
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.split()[1:3] == ["ERROR", "coordinator"]
    assert rest[-1] == "ValueError: boom"

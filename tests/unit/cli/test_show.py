"""Tables for people, JSON for programs."""

import json
import time

import pytest

from strata.cli.show import Column, ago, number, show_rows, size

COLUMNS: list[Column] = [("task", lambda row: row["id"]), ("status", lambda row: row.get("status"))]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s ago"), (125, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")]
)
def test_ago(seconds: float, shown: str) -> None:
    assert ago(time.time() - seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (24e6, "24.0 MB"), (7.2e12, "7.2 TB")]
)
def test_size(value: float, shown: str) -> None:
    assert size(value) == shown


def test_what_is_unknown_is_not_a_number() -> None:
    assert ago(None) is None
    assert size(None) is None
    assert number(None, " %") is None


def test_rows_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([{"id": "a[b]", "status": "running"}, {"id": "c"}], COLUMNS, as_json=False, empty="none")
    header, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["task", "status"]
    assert first == ["a[b]", "running"]
    assert second == ["c", "–"]


def test_rows_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([{"id": "a"}], COLUMNS, as_json=True, empty="none")
    assert json.loads(capsys.readouterr().out) == [{"id": "a"}]


def test_no_rows_are_a_sentence_or_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([], COLUMNS, as_json=False, empty="No tasks yet.")
    show_rows([], COLUMNS, as_json=True, empty="No tasks yet.")
    assert capsys.readouterr().out.split("\n") == ["No tasks yet.", "[]", ""]

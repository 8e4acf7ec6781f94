"""Following what ranks print: whole lines, levels, endless lines, floods; nothing lost without a count."""

from pathlib import Path

import pytest

from strata.agent import logs
from strata.agent.logs import Tail, guess_level
from strata.types.logs import LogLevel


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("WARNING step 3 is slow", LogLevel.WARN),
        ("[ERROR] no such file", LogLevel.ERROR),
        ("2026-11-15 10:00:00,123 - root - DEBUG - x", LogLevel.DEBUG),
        ("Traceback (most recent call last):", LogLevel.ERROR),
        ("ValueError: bad", LogLevel.ERROR),
        ("torch.OutOfMemoryError: CUDA", LogLevel.ERROR),
        ("loss 0.3", LogLevel.INFO),
        ("an error-free run", LogLevel.ERROR),
        ("terror", LogLevel.INFO),
    ],
)
def test_levels_are_guessed_from_how_loggers_write(text: str, level: LogLevel) -> None:
    assert guess_level(text) is level


def _tail(folder: Path, data: bytes) -> Tail:
    path = folder / "out"
    path.write_bytes(data)
    return Tail(path)


def _append(tail: Tail, data: bytes) -> None:
    with tail.path.open("ab") as file:
        file.write(data)


def test_only_whole_lines_are_passed_on_until_the_end(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"one\ntw")
    assert [line.text for line in tail.read()] == ["one"]
    _append(tail, b"o\n\nthree")
    assert [(line.offset, line.text) for line in tail.read()] == [(4, "two")]
    assert [line.text for line in tail.read(final=True)] == ["three"]
    assert not tail.behind


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"one\ntwo\nthree\n")
    first = next(iter(tail.read()))
    assert [line.text for line in Tail(tail.path, first.offset + 4).read()] == ["two", "three"]


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert list(Tail(tmp_path / "none").read()) == []


def test_a_line_of_a_hundred_megabytes_is_shown_once_and_counted(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"x" * 2_000_000 + b"\nafter\n")
    seen = []
    while tail.behind:
        seen += [line.text for line in tail.read()]
    assert len(seen) == 3
    assert len(seen[0]) < logs.MAX_LINE_BYTES + 10
    assert seen[1] == f"… the line above went on for {2_000_000 - logs.MAX_LINE_BYTES} more bytes"
    assert seen[2] == "after"


def test_a_flood_is_skipped_with_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BACKLOG_BYTES", 10_000)  # a constant of the module, not a part of it
    monkeypatch.setattr(logs, "READ_BYTES", 1_000)
    tail = _tail(tmp_path, b"0123456\n" * 10_000)
    *start, skipped = [line.text for line in tail.read()]
    assert start == ["0123456"] * 125
    assert skipped == "… 78000 bytes of output were skipped: more than can be passed on"
    assert [line.text for line in tail.read()] == ["0123456"] * 125
    assert not tail.behind


def test_a_progress_bar_shows_its_last_state(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"\r 10%\r 20%\r 30%\n\xff broken\n")
    assert [line.text for line in tail.read()] == [" 30%", "\ufffd broken"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measures of shedding, for files of kilobytes."""
    monkeypatch.setattr(logs, "KEEP_BYTES", 8 * 4096)
    monkeypatch.setattr(logs, "SHED_BYTES", 8 * 4096)


def _texts(tail: Tail) -> list[str]:
    return [line.text for line in tail.read()]


@pytest.mark.usefixtures("small")
def test_what_was_passed_on_is_given_back_to_the_disk(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"%07d\n" % 0 * 20_000)
    before = tail.path.stat().st_blocks
    assert len(_texts(tail)) == 20_000
    assert not tail.shed(noted=tail.offset)
    kept = tail.path.stat().st_blocks * 512
    assert kept <= logs.KEEP_BYTES + 2 * 4096 < before * 512
    _append(tail, b"after\n")
    assert _texts(tail) == ["after"]
    assert _texts(Tail(tail.path, 160_000)) == ["after"], "the next agent goes on where this one was"
    assert tail.path.read_bytes().endswith(b"\n0000000\nafter\n")


@pytest.mark.usefixtures("small")
def test_what_is_not_safe_yet_stays(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"%07d\n" % 0 * 20_000)
    before = tail.path.stat().st_blocks
    assert len(_texts(tail)) == 20_000
    assert not tail.shed(noted=40_000)
    assert tail.path.stat().st_blocks == before


@pytest.mark.usefixtures("small")
def test_without_holes_a_file_begins_anew_when_all_of_it_was_passed_on(tmp_path: Path) -> None:
    tail = _tail(tmp_path, b"%07d\n" % 0 * 20_000)
    tail.holes = False
    assert len(_texts(tail)) == 20_000
    _append(tail, b"one more\n")
    assert not tail.shed(noted=tail.offset), "there is more in it"
    assert _texts(tail) == ["one more"]
    assert tail.shed(noted=tail.offset)
    _append(tail, b"anew\n")
    assert _texts(tail) == ["anew"]
    assert _texts(Tail(tail.path, 160_009)) == ["anew"], "an old note of a longer file is no reason to lose the new one"

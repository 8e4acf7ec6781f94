"""What needs no judging is read without pydantic, and never differently: pydantic-settings has the last word."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.config import SETTINGS, Secret, Settings, default_of, load_settings, variables
from strata.config.judge import read_judged
from strata.config.plain import read_plainly
from strata.errors import InvalidConfig

TEXTS = (
    "", " ", "0", "1", "-1", "+1", "007", "1.5", "1.", ".5", "1e3", "1_000", "70000", "65535", "65536", "4096",
    str(2**70), "nan", "inf", "true", "True", "TRUE", "yes", "on", "off", "false", "local", "s3", "S3", "json", "h:1",
    "http://h:1", "https://h:1", "h:99999", "a:1, b:2", "30000-30001", "1-2", "postgresql://u@h/d", "/tmp/x", "~/x",
    "a b", "a\nb", "é", "\ud800", "\x7f", "null", "[]", "{}", '"x"', "http://host", "１", " 5", "5 ",
)  # fmt: skip
FLAGS: tuple[Any, ...] = (0, 1, -1, 70000, 1.5, math.nan, math.inf, True, False, 2**70, Path("x"), b"x", [], ["a"], ())


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in {one for field in SETTINGS for one in variables(field)} & os.environ.keys():
        monkeypatch.delenv(name)


def judged(flags: dict[str, Any]) -> Settings | None:
    try:
        return read_judged(flags)
    except InvalidConfig:
        return None


@pytest.mark.parametrize("name", SETTINGS)
def test_a_value_that_is_read_plainly_is_what_pydantic_makes_of_it(name: str) -> None:
    for value in (*TEXTS, *FLAGS):
        plain = read_plainly({name: value}, {})
        if plain is not None:
            right = judged({name: value})
            assert plain == right, value
            assert right is not None
            assert plain.given == right.given == {name}
            assert type(getattr(plain, name)) is type(getattr(right, name)), value


@given(st.text(max_size=12) | st.integers() | st.floats() | st.booleans(), st.sampled_from(sorted(SETTINGS)))
def test_so_is_whatever_else_comes(value: object, name: str) -> None:
    plain = read_plainly({name: value}, {})
    assert plain is None or plain == judged({name: value})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("data_dir", "/data", Path("/data")),
        ("http_port", "8080", 8080),
        ("heartbeat_timeout", "2.5", 2.5),
        ("coordinator_addr", "http://h:1", "h:1"),
        ("quiet", "1", True),
        ("storage_backend", "s3", "s3"),
        ("token", "t", Secret("t")),
        ("slots", "3", 3),
    ],
)
def test_what_agents_and_people_set_every_day_is_plain(name: str, text: str, value: object) -> None:
    plain = read_plainly({}, {variables(name)[-1]: text})
    assert plain is not None
    assert getattr(plain, name) == value
    assert plain.given == {name}


@pytest.mark.parametrize("name", ["strata_http_port", "Heartbeat_Timeout"])
def test_other_letters_are_left_to_pydantic_which_reads_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_plainly({}, {name: "7"}) is None
    monkeypatch.setenv(name, "7")
    settings = load_settings()
    assert 7 in (settings.http_port, settings.heartbeat_timeout)


GOOD = {
    "data_dir": "/data",
    "http_port": "8080",
    "heartbeat_timeout": "2.5",
    "coordinator_addr": "http://h:1",
    "quiet": "1",
    "storage_backend": "s3",
    "token": "t",
    "slots": "3",
}
TOML_VALUES = ("true", "1", "-1", "2.5", "nan", "1979-05-27", "[]", "'s3'", "'8080'", "0x1F", "{ a = 1 }")
NAMES = st.sampled_from([*(name for name in GOOD for _ in range(5)), *SETTINGS])


@st.composite
def layers(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Up to four settings: where each stands, under which name, and its value as it is written there."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        where, name = draw(st.sampled_from(("environ", ".env", "strata.toml"))), draw(NAMES)
        text = GOOD.get(name, "x") if draw(st.integers(0, 3)) else draw(st.sampled_from(TEXTS))
        if where == "strata.toml":
            found.append((where, name, json.dumps(text) if draw(st.booleans()) else draw(st.sampled_from(TOML_VALUES))))
        else:
            spelled = draw(st.sampled_from([*variables(name), variables(name)[-1].lower(), f"OTHER_{name}"]))
            found.append((where, spelled, text if where == "environ" else draw(st.sampled_from((text, f"'{text}'")))))
    return found


@settings(deadline=None)
@given(layers())
def test_so_is_what_stands_in_files_and_variables_together(written: list[tuple[str, str, str]]) -> None:
    for file in (".env", "strata.toml"):
        lines = [f"{name} = {value}\n" for where, name, value in written if where == file]
        Path(file).write_bytes("".join(lines).encode(errors="surrogatepass"))
    environ = {name: value for where, name, value in written if where == "environ" and "\ud800" not in value}
    with mock.patch.dict(os.environ, environ):
        try:
            plain = read_plainly({}, os.environ)
        except InvalidConfig:  # no TOML, or no text
            return
        right = judged({}) if plain is not None else None
        assert plain == right
        assert plain is None or (right is not None and plain.given == right.given)


def test_files_as_people_have_them_are_plain() -> None:
    Path(".env").write_text("# ours\nexport API_KEY='k'\nHEARTBEAT_TIMEOUT=5\nSTRATA_HTTP_PORT=${PORT}\n")
    Path("strata.toml").write_text("http_port = 1\nslots = 2\ndata_dir = '/data'\nquiet = true\nscrub_mb_s = 8\n")
    with mock.patch.dict(os.environ, {"PORT": "8080", "STRATA_SLOTS": "3"}):
        plain = read_plainly({"quiet": False}, os.environ)
        assert plain == judged({"quiet": False})
    assert plain is not None
    assert (plain.heartbeat_timeout, plain.http_port, plain.slots) == (5.0, 8080, 3)
    assert (plain.data_dir, plain.quiet, plain.scrub_mb_s) == (Path("/data"), False, 8.0)
    Path(".env").unlink()
    Path("strata.toml").write_text("[task_types]\nmine = ['python', 'm.py']\n")
    plain = read_plainly({}, {})
    assert plain == judged({})
    assert plain is not None
    assert plain.task_types == {"mine": ["python", "m.py"]}
    for odd in ("mine = 'python'", "mine = [1]", "mine.deep = ['a']"):
        Path("strata.toml").write_text(f"[task_types]\n{odd}\n")
        assert read_plainly({}, {}) is None, odd
    Path("strata.toml").write_text("allowed_origins = []\n")
    assert read_plainly({}, {}) is None


def test_flags_win_over_the_environment_and_its_longer_spelling_over_the_shorter() -> None:
    environ = {"HEARTBEAT_TIMEOUT": "5", "STRATA_HEARTBEAT_TIMEOUT": "6"}
    plain = read_plainly({}, environ)
    assert plain is not None
    assert plain.heartbeat_timeout == 6.0
    plain = read_plainly({"heartbeat_timeout": 7}, environ)
    assert plain is not None
    assert plain.heartbeat_timeout == 7.0


def test_defaults_are_what_pydantic_makes_of_them() -> None:
    assert read_plainly({}, {}) == Settings() == read_judged({})
    assert read_judged({}).given == frozenset()
    assert all(getattr(Settings(), name) == default_of(field) for name, field in SETTINGS.items())


def test_a_record_made_in_code_counts_what_differs_as_given(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).given == {"data_dir"}
    changed = load_settings({"host": "127.0.0.1"}).but(slots=3)
    assert changed.slots == 3
    assert changed.given == {"host", "slots"}


def test_a_process_with_plain_settings_loads_no_pydantic() -> None:
    Path(".env").write_text("STRATA_SLOTS=2\n")
    Path("strata.toml").write_text("quiet = true\n")
    code = "import sys; from strata.config import load_settings; load_settings(); print('pydantic' in sys.modules)"
    for extra, loaded in (({"STRATA_HTTP_PORT": "0"}, "False"), ({"STRATA_HTTP_PORT": "+0"}, "True")):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **extra}
        )
        assert done.stdout.strip() == loaded

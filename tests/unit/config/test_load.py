"""Settings: flags over environment over .env over strata.toml; what is wrong is named, with what is allowed."""

import json
from pathlib import Path

import pytest

from strata.config import SETTINGS, check_storage, default_of, environment, load_settings, masked, variables
from strata.errors import InvalidConfig
from strata.storage.options import StorageOptions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_are_those_of_the_contract() -> None:
    settings = load_settings()
    assert settings.coordinator_addr == "localhost:50051"
    assert settings.heartbeat_timeout == 30.0
    assert settings.poll_interval_sec == 3.0
    assert settings.ch_host is None
    assert (settings.host, settings.grpc_port, settings.http_port) == ("127.0.0.1", 50051, 3000)


def test_both_spellings_are_read_and_the_longer_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTBEAT_TIMEOUT", "5")
    assert load_settings().heartbeat_timeout == 5.0
    monkeypatch.setenv("STRATA_HEARTBEAT_TIMEOUT", "7")
    assert load_settings().heartbeat_timeout == 7.0


def test_flags_beat_the_environment_which_beats_dotenv_which_beats_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "strata.toml").write_text("heartbeat_timeout = 4\n[task_types]\nmine = ['python', 'm.py']\n")
    assert load_settings().heartbeat_timeout == 4.0
    assert load_settings().task_types == {"mine": ["python", "m.py"]}
    (folder / ".env").write_text("export STRATA_HEARTBEAT_TIMEOUT='5'\nSOMEBODY_ELSES=1\n")
    assert load_settings().heartbeat_timeout == 5.0
    monkeypatch.setenv("HEARTBEAT_TIMEOUT", "6")
    assert load_settings().heartbeat_timeout == 6.0
    assert load_settings({"heartbeat_timeout": None}).heartbeat_timeout == 6.0
    assert load_settings({"heartbeat_timeout": 8}).heartbeat_timeout == 8.0


def test_a_bucket_gets_its_keys_from_dotenv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("AWS_ACCESS_KEY_ID=from-file\nAWS_SECRET_ACCESS_KEY=s\nAWS_REGION=eu-north-1\n")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    options = StorageOptions.from_environment(environment())
    assert (options.access_key_id, options.region) == ("from-file", "us-west-2")
    assert load_settings().aws_access_key_id == "from-file"


def test_the_order_holds_for_what_stores_and_ranks_are_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the spelling: a variable under its short name beats `.env` under its long one."""
    (folder / "strata.toml").write_text("aws_region = 'file'\naws_endpoint_url = 'http://s3'\nhttp_port = 0\n")
    assert StorageOptions.from_environment(environment()).endpoint_url == "http://s3"
    assert StorageOptions.from_environment(environment()).region == "file"
    assert environment()["STRATA_HTTP_PORT"] == "0"
    (folder / ".env").write_text("STRATA_AWS_REGION=dotenv\n")
    assert StorageOptions.from_environment(environment()).region == "dotenv"
    monkeypatch.setenv("AWS_REGION", "environment")
    assert StorageOptions.from_environment(environment()).region == "environment"


def test_a_dotenv_with_a_mistake_is_named(folder: Path) -> None:
    (folder / ".env").write_text("STRATA_GRPC_PROT=1\n")
    with pytest.raises(InvalidConfig, match="STRATA_GRPC_PROT is not a setting"):
        load_settings()
    (folder / ".env").write_text("HEARTBEAT_TIMEOUT=soon\n")
    with pytest.raises(InvalidConfig, match="HEARTBEAT_TIMEOUT = 'soon' is not valid"):
        load_settings()
    (folder / ".env").unlink()
    (folder / ".env").mkdir()
    assert load_settings().heartbeat_timeout == 30.0


def test_s3_without_a_bucket_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_BACKEND", "s3")
    with pytest.raises(InvalidConfig, match="STORAGE_BACKEND is s3 but CHECKPOINT_BUCKET is not set"):
        check_storage(load_settings())
    monkeypatch.setenv("CHECKPOINT_BUCKET", "models")
    check_storage(load_settings())


@pytest.mark.parametrize(("given", "address"), [("http://h:1", "h:1"), ("h:1", "h:1"), ("https://h:1", "https://h:1")])
def test_addresses_may_have_a_scheme(given: str, address: str) -> None:
    """https means TLS also on loopback."""
    assert load_settings({"coordinator_addr": given}).coordinator_addr == address


def test_ports_for_ranks_are_a_range() -> None:
    assert load_settings({"rank_ports": "30000-30001"}).rank_port_range == range(30000, 30002)
    for wrong in ("30000", "30001-30000", "80-90", "30000-70000", "a-b"):
        with pytest.raises(InvalidConfig, match="rank_ports"):
            load_settings({"rank_ports": wrong})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COORDINATOR_ADDR", "nowhere"),
        ("COORDINATOR_ADDR", "h:99999"),
        ("HEARTBEAT_TIMEOUT", "0"),
        ("HEARTBEAT_TIMEOUT", "nan"),
        ("STORAGE_BACKEND", "tape"),
        ("CH_PORT", "70000"),
        ("CH_DATABASE", "a-b; DROP"),
        ("STRATA_SLOTS", "0"),
    ],
)
def test_a_bad_value_is_named_with_its_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidConfig, match=f"{name} = ") as caught:
        load_settings()
    assert value in caught.value.message


def test_a_variable_that_is_no_setting_is_refused_with_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_GRPC_PROT", "1")
    with pytest.raises(InvalidConfig, match="STRATA_GRPC_PROT is not a setting") as caught:
        load_settings()
    assert "STRATA_GRPC_PORT" in caught.value.hint


def test_a_key_of_the_file_that_is_no_setting_is_refused(folder: Path) -> None:
    (folder / "strata.toml").write_text("heartbeat_timeuot = 1\n")
    with pytest.raises(InvalidConfig, match="heartbeat_timeuot is not a setting of Strata; did you mean heartbeat_t"):
        load_settings()


def test_a_bad_value_is_named_as_it_was_written(folder: Path) -> None:
    (folder / "strata.toml").write_text("http_port = 'x'\n")
    with pytest.raises(InvalidConfig, match=r"^http_port = 'x' is not valid"):
        load_settings()
    (folder / ".env").write_text("STRATA_HTTP_PORT=y\n")
    with pytest.raises(InvalidConfig, match=r"^STRATA_HTTP_PORT = 'y' is not valid"):
        load_settings()


def test_a_file_that_is_no_toml_is_refused(folder: Path) -> None:
    (folder / "strata.toml").write_text("= =")
    with pytest.raises(InvalidConfig, match=r"strata\.toml cannot be read"):
        load_settings()


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_TOKEN", "hush-hush")
    monkeypatch.setenv("CH_PASSWORD", "hush-hush")
    settings = load_settings()
    assert "hush" not in str(masked(settings)) + repr(settings)
    assert set(masked(settings)) == set(SETTINGS)


def test_what_is_shown_are_the_values_as_json_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_ALLOWED_ORIGINS", "http://localhost:5173")
    monkeypatch.setenv("STRATA_QUIET", "1")
    monkeypatch.setenv("STRATA_TOKEN", "hush-hush")
    monkeypatch.setenv("STRATA_TASK_TYPES", '{"mine": ["python", "m.py"]}')
    shown = masked(load_settings({"data_dir": "/data"}))
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert (shown["http_port"], shown["heartbeat_timeout"], shown["quiet"], shown["slots"]) == (3000, 30.0, True, None)
    assert (shown["data_dir"], shown["token"], shown["ch_password"]) == ("/data", "*" * 10, "")
    assert shown["allowed_origins"] == ["http://localhost:5173"]
    assert shown["task_types"] == {"mine": ["python", "m.py"]}


@pytest.mark.parametrize("name", SETTINGS)
def test_an_empty_variable_is_not_set(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a compose file it is one that nobody has said."""
    plain, *_ = reversed(variables(name))
    for odd in ("0", "+0"):  # read plainly, and judged
        monkeypatch.setenv("STRATA_HTTP_PORT", odd if name != "http_port" else "")
        monkeypatch.setenv(plain, "")
        assert getattr(load_settings(), name) == default_of(SETTINGS[name])
        assert name not in load_settings().given
        assert plain not in environment()
    (folder / ".env").write_text(f"{plain}=\n")
    monkeypatch.delenv(plain)
    assert name not in load_settings().given


def test_an_empty_variable_leaves_the_word_to_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("STRATA_DATA_DIR=/from-dotenv\nAWS_REGION=north\n")
    monkeypatch.setenv("STRATA_DATA_DIR", "")
    monkeypatch.setenv("STRATA_AWS_REGION", "")
    assert load_settings().data_dir == Path("/from-dotenv")
    assert environment()["STRATA_DATA_DIR"] == "/from-dotenv"
    assert StorageOptions.from_environment(environment()).region == "north"


@pytest.mark.parametrize("name", [name for name, field in SETTINGS.items() if "Path" in str(field.type)])
def test_an_empty_path_is_refused(name: str, folder: Path) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name} = '' is not valid: it is empty: leave it out, or say \\. for"):
        load_settings({name: ""})
    (folder / "strata.toml").write_text(f"{name} = ''\n")
    with pytest.raises(InvalidConfig, match=f"^{name} = '' is not valid: it is empty"):
        load_settings()
    assert getattr(load_settings({name: "."}), name) == Path()


def test_origins_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().allowed_origins == ()
    monkeypatch.setenv("STRATA_ALLOWED_ORIGINS", "http://localhost:5173, https://page.example")
    assert load_settings().allowed_origins == ("http://localhost:5173", "https://page.example")
    for bad in ("*", "localhost:5173", "http://host/path", "https://*.example"):
        monkeypatch.setenv("STRATA_ALLOWED_ORIGINS", bad)
        with pytest.raises(InvalidConfig, match="is not an origin"):
            load_settings()

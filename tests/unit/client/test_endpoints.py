"""Where a cluster is found: what was asked for, the records of the data folder, then those of the user; the same for
every command."""

import json
import os
from pathlib import Path

import pytest

from strata.client.endpoints import (
    Endpoints,
    announced,
    find_cluster,
    find_endpoints,
    find_observatory,
    login_record,
    user_record,
)
from strata.config import Settings, load_settings

_LOGIN = {"grpc": "far:50051", "http": "https://far:3000", "telemetry": "far:50052", "token": "t", "roots": "R"}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def _record(folder: Path, name: str, **endpoints: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({**endpoints, "pid": os.getpid()}))


def _log_in() -> None:
    login_record().parent.mkdir(parents=True, exist_ok=True)
    login_record().write_text(json.dumps(_LOGIN))
    login_record().chmod(0o600)


def test_processes_that_were_started_one_by_one_are_found_as_those_of_strata_up(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    _record(folder, "coordinator", grpc="127.0.0.1:1")
    _record(folder, "observatory", http="http://127.0.0.1:2", telemetry="127.0.0.1:3")
    (folder / "token").write_text("secret\n")
    found = find_endpoints(Settings(data_dir=folder))
    assert (found.grpc, found.http, found.telemetry) == ("127.0.0.1:1", "http://127.0.0.1:2", "127.0.0.1:3")
    assert found.access.token == "secret"


def test_what_was_asked_for_goes_before_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(tmp_path / ".strata", "coordinator", grpc="127.0.0.1:1")
    monkeypatch.setenv("COORDINATOR_ADDR", "10.0.0.5:50051")
    found = find_endpoints(load_settings())
    assert found == Endpoints(
        grpc="10.0.0.5:50051", http="https://10.0.0.5:3000", telemetry="10.0.0.5:50052", access=found.access, asked=True
    )
    monkeypatch.setenv("STRATA_INSECURE", "1")
    assert find_endpoints(load_settings()).http == "http://10.0.0.5:3000"


def test_the_folder_tells_the_rest_of_the_cluster_that_was_asked_for(tmp_path: Path) -> None:
    _record(tmp_path / "data", "coordinator", grpc="127.0.0.1:1")
    _record(tmp_path / "data", "observatory", http="http://127.0.0.1:2", telemetry="127.0.0.1:3")
    found = find_endpoints(Settings(data_dir=tmp_path / "data", coordinator_addr="localhost:1"))
    assert (found.grpc, found.http) == ("localhost:1", "http://127.0.0.1:2")


def test_a_login_is_found_from_any_folder_and_after_a_running_strata_up(tmp_path: Path) -> None:
    assert find_cluster(load_settings()) is None
    _log_in()
    found = find_endpoints(load_settings())
    assert (found.grpc, found.access.token, found.access.roots, found.asked) == ("far:50051", "t", "R", True)
    with announced({"grpc": "127.0.0.1:1", "telemetry": "127.0.0.1:3"}, tmp_path / "data"):
        assert find_endpoints(load_settings()).grpc == "127.0.0.1:1"
    observatory = find_observatory(load_settings())
    assert observatory is not None
    assert observatory.telemetry == "far:50052"


def test_when_the_later_of_two_ends_the_earlier_is_found_again(tmp_path: Path) -> None:
    for pid, found_again in ((os.getppid(), "127.0.0.1:7"), (2**22 + 1, None)):  # the second one has ended
        user_record().parent.mkdir(parents=True, exist_ok=True)
        user_record().write_text(json.dumps({"grpc": "127.0.0.1:7", "telemetry": "127.0.0.1:8", "pid": pid}))
        user_record().chmod(0o600)
        with announced({"grpc": "127.0.0.1:1", "telemetry": "127.0.0.1:3"}, tmp_path / "data"):
            assert find_endpoints(load_settings()).grpc == "127.0.0.1:1"
        found = find_cluster(load_settings())
        assert (found and found.grpc) == found_again


def test_a_home_without_room_keeps_nobody_from_starting(tmp_path: Path) -> None:
    user_record().parent.mkdir(parents=True)
    user_record().with_name(f"{user_record().name}.{os.getpid()}").symlink_to("/dev/full")
    with announced({"grpc": "127.0.0.1:1", "telemetry": "127.0.0.1:3"}, tmp_path / "data"):
        assert find_cluster(load_settings()) is None


def test_who_names_a_data_folder_means_that_one(tmp_path: Path) -> None:
    _log_in()
    assert find_cluster(load_settings({"data_dir": tmp_path / "mine"})) is None


def test_a_record_that_others_could_write_is_not_believed() -> None:
    _log_in()
    login_record().chmod(0o666)
    assert find_cluster(load_settings()) is None


def test_ipv6_hosts_have_brackets() -> None:
    found = find_endpoints(Settings(coordinator_addr="[fd00::5]:50051"))
    assert (found.http, found.telemetry) == ("https://[fd00::5]:3000", "[fd00::5]:50052")


def test_any_free_port_is_no_address_that_metrics_could_go_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_TELEMETRY_PORT", "0")
    assert find_observatory(load_settings()) is None
    _log_in()
    found = find_observatory(load_settings())
    assert found is not None
    assert found.telemetry == "far:50052"
    monkeypatch.setenv("COORDINATOR_ADDR", "elsewhere:50051")
    assert find_observatory(load_settings()) is None

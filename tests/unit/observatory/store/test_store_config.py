"""Where the store is, as CH_* say it: several hosts, and what makes no sense is refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from strata.errors import InvalidConfig
from strata.observatory.store.config import StoreConfig


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("db", [("db", 8123)]),
        ("a, b:8124", [("a", 8123), ("b", 8124)]),
        ("[fd00::5],[fd00::6]:9000", [("[fd00::5]", 8123), ("[fd00::6]", 9000)]),
    ],
)
def test_each_host_may_have_a_port_of_its_own(host: str, hosts: list[tuple[str, int]]) -> None:
    config = StoreConfig(path=None, host=host)
    assert config.hosts == hosts
    assert config.label == "clickhouse at " + ", ".join(f"{name}:{port}" for name, port in hosts)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": "a,,b"}, "CH_HOST is a host, or several as a,b:8124, this is 'a,,b'"),
        ({"host": "db:http"}, "CH_HOST is a host"),
        ({"host": "http://db"}, "CH_HOST is a host"),
        ({"host": "db", "ca_file": "ca.pem"}, "CH_CA_FILE takes CH_PROTOCOL=https"),
        ({"host": "db", "secure": True, "cert": "/nowhere/client.pem"}, "CH_CERT names no file: /nowhere/client.pem"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfig, match="CH_") as refused:
        StoreConfig(path=None, **given)
    assert refused.value.message.startswith(said)


def test_files_that_are_there_are_taken(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    assert StoreConfig(path=None, host="db", secure=True, ca_file=str(tmp_path / "ca.pem")).hosts == [("db", 8123)]

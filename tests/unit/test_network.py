"""Listening: a taken port names its owner; addresses are what others can dial."""

import json
import os
from pathlib import Path

import pytest

from strata.errors import InvalidConfig
from strata.network import (
    bind,
    check_free,
    is_loopback,
    is_wildcard,
    join_address,
    reachable_host,
    split_address,
    write_endpoint,
)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1", "[::1]"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert reachable_host(host, "head.example") == host.strip("[]")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", ""])
def test_everything_else_is_exposed(host: str) -> None:
    assert not is_loopback(host)
    assert reachable_host(host, "head.example") == "head.example"


def test_who_listens_everywhere_is_found_by_an_address_that_can_be_dialled() -> None:
    assert is_wildcard("0.0.0.0")
    assert is_wildcard("[::]")
    for host in ("0.0.0.0", "::"):
        assert not is_wildcard(reachable_host(host, None))
    assert reachable_host("10.0.0.1", None) == "10.0.0.1"


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("head:50051", "head", 50051),
        ("[fd00::1]:50051", "fd00::1", 50051),
        ("https://head:1", "head", 1),
        ("http://[::1]:2/", "::1", 2),
    ],
)
def test_addresses_are_taken_apart_and_put_together(address: str, host: str, port: int) -> None:
    assert split_address(address) == (host, port)
    assert split_address(join_address(host, port)) == (host, port)


def test_what_is_no_address_is_named() -> None:
    for wrong in ("head", "", "head:port"):
        with pytest.raises(ValueError, match=r"host:port|invalid literal"):
            split_address(wrong)


def test_a_taken_port_names_its_owner_and_the_flag() -> None:
    with bind("127.0.0.1", 0, flag="--grpc-port") as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidConfig, match=rf"port {port} is taken by .*pid {os.getpid()}") as caught:
            check_free("127.0.0.1", port, flag="--grpc-port")
        assert "--grpc-port" in caught.value.hint
    check_free("127.0.0.1", port, flag="--grpc-port")


def test_an_address_that_is_not_ours_is_named() -> None:
    with pytest.raises(InvalidConfig, match=r"cannot listen on 192\.0\.2\.1:"):
        bind("192.0.2.1", 0, flag="--http-port")


def test_an_endpoint_file_is_whole_or_not_there(tmp_path: Path) -> None:
    file = write_endpoint(tmp_path / "coordinator.json", {"grpc": "127.0.0.1:1"})
    assert json.loads(file.read_text()) == {"grpc": "127.0.0.1:1", "pid": os.getpid()}
    assert list(tmp_path.iterdir()) == [file]

"""Listening: a taken port names its owner, an address that others can reach needs a token and a word."""

import json
import os
import socket
from pathlib import Path

import pytest

from strata.errors import InvalidConfig
from strata.network import bind, check_exposure, check_free, is_loopback, shown_address, write_endpoint


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1", "[::1]"])
def test_loopback_needs_nothing(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, token=None, insecure=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", ""])
def test_everything_else_is_exposed(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InvalidConfig, match="would serve the network without TLS") as caught:
        check_exposure(host, token="t", insecure=False)
    assert "STRATA_INSECURE=1" in caught.value.hint
    with pytest.raises(InvalidConfig, match="needs a token"):
        check_exposure(host, token="", insecure=True)
    check_exposure(host, token="t", insecure=True)


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


def test_addresses_are_shown_as_others_dial_them() -> None:
    with bind("127.0.0.1", 0, flag="-") as sock:
        assert shown_address(sock) == f"127.0.0.1:{sock.getsockname()[1]}"
    if socket.has_ipv6:
        with bind("::1", 0, flag="-") as sock:
            assert shown_address(sock).startswith("[::1]:")


def test_an_endpoint_file_is_whole_or_not_there(tmp_path: Path) -> None:
    file = write_endpoint(tmp_path / "coordinator.json", {"grpc": "127.0.0.1:1"})
    assert json.loads(file.read_text()) == {"grpc": "127.0.0.1:1", "pid": os.getpid()}
    assert list(tmp_path.iterdir()) == [file]

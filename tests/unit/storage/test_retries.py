"""Requests to a bucket are tried again and say so; an upload that stands still says why."""

import logging
import secrets

import pytest

from strata.errors import StorageError
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store
from tests.support.ports import free_ports
from tests.support.proxy import Proxy, Trouble
from tests.support.seaweed import seaweed


def test_a_passing_trouble_is_survived_and_each_try_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    seaweed().make_bucket("retries")
    trouble = Trouble(lambda method, target: method == "GET" and target.endswith("/k"), "503", times=2)
    with Proxy(seaweed().endpoint_url, trouble) as proxy, caplog.at_level(logging.WARNING, logger="strata"):
        store = open_store(f"s3://retries/{secrets.token_hex(4)}", seaweed().options(endpoint_url=proxy.url))
        store.put("k", b"bytes")
        assert store.get("k") == b"bytes"
    said = [record.getMessage() for record in caplog.records if record.name == "strata.storage.retries"]
    assert len(said) == trouble.hits == 2
    assert "failed, try 1 of 9" in said[0]
    assert "503" in said[0]
    assert "next try in 0." in said[0]


def test_a_refusal_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    seaweed().make_bucket("retries")
    with caplog.at_level(logging.WARNING, logger="strata"), pytest.raises(StorageError):
        open_store("s3://retries/x", seaweed().options(secret_access_key="wrong")).get("k")
    assert "next try" not in caplog.text


def test_an_upload_that_stands_still_says_why(caplog: pytest.LogCaptureFixture) -> None:
    """Takes about 6 s: obstore tries the parts again by itself, and we look after two."""
    away = StorageOptions(
        region="us-east-1",
        access_key_id="k",
        secret_access_key="s",
        endpoint_url=f"http://127.0.0.1:{free_ports(1)[0]}",
        retry_timeout_s=6.0,
    )
    said: list[str] = []
    while not said:  # obstore's waits are random: now and then it gives up before we look
        with caplog.at_level(logging.WARNING, logger="strata"), pytest.raises(StorageError):
            open_store("s3://away/x", away).put_stream("big", iter([memoryview(bytes(6 << 20))] * 3))
        said = [record.getMessage() for record in caplog.records if "stands still" in record.getMessage()]
    first = said[0]
    assert first.startswith("upload of s3://away/x/big stands still for ")
    assert "its parts are tried again: " in first
    assert "error sending request" in first

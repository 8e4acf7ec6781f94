"""CloudStore against a real S3 server: multipart, and the advice a user gets for wrong keys and buckets."""

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.errors import StorageAccessDenied, StorageError, StorageNotFound
from strata.storage.base import HoldsUploads
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store
from tests.support.local_http import LOCAL
from tests.support.ports import free_ports
from tests.support.seaweed import seaweed

_MIB = 1 << 20


@pytest.fixture(scope="module")
def bucket() -> str:
    seaweed().make_bucket("cloud-tests")
    return "cloud-tests"


def test_a_large_stream_goes_up_in_parts_and_comes_back_equal(bucket: str) -> None:
    store = open_store(f"s3://{bucket}/{secrets.token_hex(4)}", seaweed().options(part_size=5 * _MIB))
    blocks = [secrets.token_bytes(3 * _MIB) for _ in range(5)]
    store.put_stream("big", (memoryview(block) for block in blocks))
    assert store.list().objects[0].size == 15 * _MIB
    halves = [bytearray(4 * _MIB), bytearray(4 * _MIB)]
    assert store.read_into("big", _MIB, [memoryview(half) for half in halves]) == 8 * _MIB
    assert b"".join(halves) == b"".join(blocks)[_MIB : 9 * _MIB]


def test_a_failed_stream_aborts_its_multipart_upload(bucket: str) -> None:
    store = open_store(f"s3://{bucket}/{secrets.token_hex(4)}", seaweed().options(part_size=5 * _MIB))

    def broken() -> Iterator[memoryview]:
        for _ in range(4):
            yield memoryview(bytes(3 * _MIB))
        raise RuntimeError("trainer went away")

    with pytest.raises(RuntimeError, match="went away"):
        store.put_stream("big", broken())
    uploads = LOCAL.get(f"{seaweed().filer_url}/buckets/{bucket}/.uploads/", headers={"Accept": "application/json"})
    assert uploads.status_code == 404 or uploads.json()["Entries"] is None


_DYING_WRITER = """
import os, signal, sys
from strata.storage.uri import open_store
from tests.support.seaweed import Seaweed

def chunks():
    for _ in range(3):
        yield memoryview(bytes(5 << 20))
    os.kill(os.getpid(), signal.SIGKILL)

server = Seaweed(sys.argv[1], "")
open_store(sys.argv[2], server.options(part_size=5 << 20, max_inflight=1)).put_stream("big", chunks())
"""


def test_uploads_of_a_killed_writer_are_found_and_aborted(bucket: str) -> None:
    uri = f"s3://{bucket}/{secrets.token_hex(4)}"
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", _DYING_WRITER, seaweed().endpoint_url, uri]
    assert subprocess.run(command, cwd=root, check=False, timeout=30).returncode == -signal.SIGKILL
    store = open_store(uri, seaweed().options())
    assert isinstance(store, HoldsUploads)
    assert store.list().objects == ()
    assert store.abort_uploads(older_than_s=3600) == 0
    assert store.abort_uploads(older_than_s=-5) == 1
    assert store.abort_uploads(older_than_s=-5) == 0
    wrong = open_store(uri, seaweed().options(secret_access_key="wrong"))
    assert isinstance(wrong, HoldsUploads)
    with pytest.raises(StorageError, match="status 403"):
        wrong.abort_uploads(older_than_s=0)


@pytest.mark.parametrize("change", [{"secret_access_key": "wrong"}, {"access_key_id": "nobody"}])
def test_wrong_credentials_give_the_documented_advice(bucket: str, change: dict[str, object]) -> None:
    store = open_store(f"s3://{bucket}/x", seaweed().options(**change))
    for call in (
        lambda: store.get("k"),
        lambda: store.put("k", b""),
        lambda: store.list(),
        lambda: store.put_stream("k", iter([memoryview(b"x")])),
        lambda: store.delete("k/"),
    ):
        with pytest.raises(StorageAccessDenied) as caught:
            call()
        assert "Verify .env or IAM Role permissions" in caught.value.hint
        assert "<?xml" not in caught.value.message


def test_a_missing_bucket_is_named(bucket: str) -> None:
    del bucket
    store = open_store("s3://no-such-bucket/x", seaweed().options())
    for call in (lambda: store.get("k"), lambda: store.put("k", b"", create=True), lambda: store.list()):
        with pytest.raises(StorageNotFound, match="no bucket") as caught:
            call()
        assert "no-such-bucket" in caught.value.hint
        assert "AWS_REGION" in caught.value.hint


def test_a_server_that_is_not_there_is_a_storage_error_with_advice() -> None:
    options = StorageOptions(
        region="us-east-1",
        access_key_id="k",
        secret_access_key="s",
        endpoint_url=f"http://127.0.0.1:{free_ports(1)[0]}",
        max_retries=1,
    )
    with pytest.raises(StorageError) as caught:
        open_store("s3://bucket/x", options).get("k")
    assert "AWS_ENDPOINT_URL" in caught.value.hint

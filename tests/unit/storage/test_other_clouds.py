"""Stores of Google and Azure at an address of their own: reached without TLS when it says http, and the advice names
their variables. The server here only answers that nothing is there.
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from strata.errors import InvalidArgument, InvalidConfig, StorageAccessDenied, StorageError
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store

_ADDRESS = {"az": "AZURE_STORAGE_ENDPOINT", "gs": "GOOGLE_BASE_URL"}
_FIELDS = {"az": "azure_endpoint", "gs": "google_endpoint"}


class _Refusing(ThreadingHTTPServer):
    status = 403

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _Refusing)
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[_Refusing]:
    with _Refusing() as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture(autouse=True)
def _accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1")
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")


def _options(server: _Refusing, scheme: str) -> StorageOptions:
    given: dict[str, Any] = {"max_retries": 0, "retry_timeout_s": 1.0, "request_timeout_s": 5.0}
    given[_FIELDS[scheme]] = f"http://127.0.0.1:{server.server_port}"
    return StorageOptions(**given)


@pytest.mark.parametrize(("scheme", "names"), [("az", "AZURE_STORAGE_ACCOUNT_KEY"), ("gs", "GOOGLE_SERVICE_ACCOUNT")])
def test_an_http_address_is_reached_and_a_refusal_names_the_keys_of_that_cloud(
    server: _Refusing, scheme: str, names: str
) -> None:
    options = _options(server, scheme)
    with pytest.raises(StorageAccessDenied) as refused:
        open_store(f"{scheme}://box/below", options).get("x")
    assert server.asked
    assert names in refused.value.hint
    assert "AWS" not in refused.value.hint


@pytest.mark.parametrize("scheme", ["az", "gs"])
def test_an_address_without_a_server_is_named(server: _Refusing, scheme: str) -> None:
    server.status = 500
    options = _options(server, scheme)
    with pytest.raises(StorageError) as failed:
        open_store(f"{scheme}://box", options).get("x")
    assert _ADDRESS[scheme] in failed.value.hint


@pytest.mark.parametrize("scheme", ["az", "gs"])
def test_an_address_of_another_kind_is_refused_by_its_variable(scheme: str) -> None:
    with pytest.raises(InvalidConfig, match=_ADDRESS[scheme]):
        StorageOptions.from_environment({_ADDRESS[scheme]: "ftp://x"})


def test_no_account_is_said_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(InvalidArgument) as refused:
        open_store("az://box", StorageOptions())
    assert "AZURE_STORAGE_ACCOUNT_NAME" in refused.value.hint

"""The command line's REST client against a real HTTP server that answers as the observatory does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from strata.client.rest import Rest, path_part
from strata.config import Settings
from strata.errors import InvalidArgument, ObservatoryUnavailable, StrataError, UnknownTask


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/api/tasks/nope":
            error = {"code": "unknown_task", "message": "no task 'nope' is known", "hint": "List them."}
            self._answer(404, json.dumps({"error": error}))
        elif self.path == "/broken":
            self._answer(502, "<html>not ours</html>")
        else:
            self._answer(200, json.dumps({"token": self.headers.get("Authorization")}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, json.dumps({"got": json.loads(body), "type": self.headers["Content-Type"]}))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Rest]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "endpoints.json").write_text(json.dumps({"http": f"http://127.0.0.1:{server.server_port}"}))
        (tmp_path / "token").write_text("secret\n")
        yield Rest(Settings(data_dir=tmp_path))
        server.shutdown()


def test_finds_the_cluster_of_the_data_folder_and_sends_its_token(api: Rest) -> None:
    assert api.get("/api/status") == {"token": "Bearer secret"}


@pytest.mark.usefixtures("api")
def test_no_proxy_of_the_environment_is_asked_for_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert Rest(Settings(data_dir=tmp_path)).get("/api/status") == {"token": "Bearer secret"}


def test_posts_json(api: Rest) -> None:
    assert api.post("/api/tasks", {"name": "x"}) == {"got": {"name": "x"}, "type": "application/json"}


def test_an_error_of_the_server_is_the_same_error_here(api: Rest) -> None:
    with pytest.raises(UnknownTask, match="no task 'nope' is known") as refused:
        api.get("/api/tasks/nope")
    assert refused.value.hint == "List them."


def test_an_answer_that_is_not_ours_is_told_by_its_status(api: Rest) -> None:
    with pytest.raises(StrataError, match="answered 502"):
        api.get("/broken")


def test_nobody_there_gives_the_specs_advice(tmp_path: Path) -> None:
    nobody = Rest(Settings(data_dir=tmp_path, http_port=1))
    with pytest.raises(ObservatoryUnavailable, match="no Strata answers") as refused:
        nobody.get("/api/status")
    assert "VITE_API_URL points to the correct address" in refused.value.hint


def test_an_empty_name_is_not_asked_for() -> None:
    assert path_part("a/b\ud800") == "a%2Fb%5Cud800"
    with pytest.raises(InvalidArgument, match="the id or name is empty"):
        path_part("")

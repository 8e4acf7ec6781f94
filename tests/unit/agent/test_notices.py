"""Notices that a host goes away: what a file or a URL may say, and what harms nothing."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from strata.agent import notices as module
from strata.agent.notices import Notice, Notices, read_notice
from tests.support.waiting import PATIENCE

_SINCE = 1_000_000_000.0


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("", None),
        ("soon", None),
        ("30", _SINCE + 30),
        ("1.5", _SINCE + 1.5),
        ("1800000000", 1_800_000_000.0),
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T08:00:00", 1_800_000_000.0),
        ('{"action": "terminate", "time": "2027-01-15T08:00:00Z"}', 1_800_000_000.0),
        ('{"deadline": 120}', _SINCE + 120),
        ('{"noticeTime": "2027-01-15T08:00:00Z"}', None),
        ("TRUE", None),
        ("NaN", None),
        ("Infinity", None),
        ("-5", None),
        (str(2**70), None),
        ("[" * 100_000, None),
        ('{"time": true}', None),
        ('{"time": "\\ud800"}', None),
    ],
)
def test_a_notice_has_the_deadline_that_it_names(text: str, deadline: float | None) -> None:
    found = read_notice(text, "here", _SINCE)
    assert found is not None
    assert found.deadline == deadline
    found.reason.encode()


def test_a_reason_is_shown_and_cut() -> None:
    found = read_notice('{"reason": "' + "spot\\ud800" * 1_000 + '"}', "here", _SINCE)
    assert found is not None
    assert found.reason.startswith("spot?")
    assert found.reason.endswith(" (here)")
    assert len(found.reason) < 300


@pytest.mark.parametrize("text", ["FALSE", "NONE\n", "null", "{}"])
def test_a_text_may_say_that_there_is_no_notice(text: str) -> None:
    assert read_notice(text, "here", _SINCE) is None


def test_of_several_notices_the_earliest_deadline_holds_and_each_may_be_taken_back() -> None:
    heard: list[Notice | None] = []
    notices = Notices()
    notices.listen(heard.append)
    late, early, some = Notice(reason="late", deadline=20.0), Notice(reason="early", deadline=10.0), Notice(reason="?")
    for source, notice in (("a", some), ("b", late), ("c", early), ("c", early), ("c", None), ("b", None), ("a", None)):
        notices.give(source, notice)
    assert heard == [some, late, early, late, some, None]


async def _until(notices: Notices, reached: Callable[[Notice | None], bool]) -> None:
    """Watches until the notice that holds is as wanted."""
    watching = asyncio.create_task(notices.watch())
    try:
        async with asyncio.timeout(PATIENCE * 15):
            while not reached(notices.current):  # noqa: ASYNC110  # any condition
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def test_a_file_gives_notice_as_long_as_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILE_S", 0.01)
    file = tmp_path / "notice"
    notices = Notices(file)
    file.write_text("30")
    await _until(notices, lambda notice: notice is not None and notice.deadline == file.stat().st_mtime + 30)
    file.unlink()
    await _until(notices, lambda notice: notice is None)
    file.mkdir()
    await _until(notices, lambda notice: notice is not None)
    file.rmdir()
    await _until(notices, lambda notice: notice is None)
    os.mkfifo(file)  # nobody writes to it, and nobody waits for that
    await _until(notices, lambda notice: notice is not None)


class _Metadata(BaseHTTPRequestHandler):
    """Answers what the test has put on its server: status and body by turns; the last one stays."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        server.asked.append(dict(self.headers))
        status, body = server.answers[0] if len(server.answers) == 1 else server.answers.pop(0)
        if status == 401 and self.headers.get("X-aws-ec2-metadata-token") == "secret":
            status, body = 200, b'{"action": "terminate", "time": "2027-01-15T08:00:00Z"}'
        if status == 0:
            server.over.wait(60)
            return
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(100 if body is None else 1):
                self.wfile.write(b"1" * 1_000_000 if body is None else body)

    def do_PUT(self) -> None:
        self.send_response(200 if self.path == "/latest/api/token" else 500)
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Metadata)
        self.answers: list[tuple[int, bytes | None]] = []
        self.asked: list[dict[str, str]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/latest/meta-data/spot/instance-action"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setattr(module, "_URL_S", 0.01)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.2)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()


async def test_a_url_gives_notice_once_it_answers_with_one(server: _Server) -> None:
    """Before that: nothing there, a failure, a hang, a redirect, a page, a hundred megabytes."""
    server.answers = [
        (404, b"no"), (500, b"oops"), (0, b""), (302, b""), (200, b"<html>hello</html>"), (200, None), (200, b""),
        (200, b"FALSE"), (200, b"\xff\xfe"), (200, b'{"action": "terminate", "time": "2027-01-15T08:00:00Z"}'),
    ]  # fmt: skip
    notices = Notices(url=server.url)
    heard: list[Notice | None] = []
    notices.listen(heard.append)
    await _until(notices, lambda notice: notice is not None)
    assert [notice.deadline for notice in heard if notice] == [1_800_000_000.0]
    assert len(server.answers) == 1
    assert server.asked[0]["Metadata-Flavor"] == "Google"


async def test_a_url_that_stops_answering_takes_nothing_back_and_one_that_says_404_does(server: _Server) -> None:
    server.answers = [(200, b"30"), (500, b""), (0, b""), (404, b"")]
    notices = Notices(url=server.url)
    heard: list[Notice | None] = []
    notices.listen(heard.append)
    await _until(notices, lambda notice: notice is None and bool(heard))
    assert len(heard) == 2


async def test_amazons_metadata_wants_a_token(server: _Server) -> None:
    server.answers = [(401, b"")]
    notices = Notices(url=server.url)
    await _until(notices, lambda notice: notice is not None)
    assert notices.current is not None
    assert notices.current.reason.startswith("terminate (notice URL ")

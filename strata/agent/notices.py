"""What says that this host goes away: a file that appears, a URL as clouds have for their spot machines, or a signal.
None of them can harm the agent: what cannot be read says nothing, and a URL is asked on a thread of its own.
"""

import asyncio
import contextlib
import json
import logging
import math
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

__all__ = ["Notice", "Notices", "read_notice"]

_log = logging.getLogger(__name__)

_FILE_S = 1.0
_URL_S = 5.0
_TIMEOUT_S = 2.0
_MAX_BYTES = 64 * 1024
_MAX_REASON = 200
_SECONDS = 1e8  # a smaller number is a span of seconds, a larger one a Unix time
_NOTHING = frozenset({"FALSE", "NONE", "NULL", "{}"})  # as Google's metadata says it
_NOT_THERE = (404, 410)
_DEADLINES = ("deadline", "time")
_WORD = re.compile(r"[A-Z_]{1,80}\Z")
_IMDS_TOKEN = "/latest/api/token"  # noqa: S105  # a path of Amazon's metadata, version 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """This host goes away, and why. `deadline` is in Unix seconds; None: not known."""

    reason: str
    deadline: float | None = None


class Notices:
    """All notices by their source. Lives on one loop; `listen` hears the notice that holds: of several, the one with
    the earliest deadline."""

    def __init__(self, file: Path | None = None, url: str | None = None) -> None:
        self._file = file
        self._url = url
        self._given: dict[str, Notice] = {}
        self._seen: dict[str, tuple[str, Notice | None]] = {}
        self._on_change: Callable[[Notice | None], None] = lambda _: None

    def listen(self, on_change: Callable[[Notice | None], None]) -> None:
        self._on_change = on_change

    @property
    def current(self) -> Notice | None:
        given = self._given.values()
        return min(given, key=lambda notice: math.inf if notice.deadline is None else notice.deadline, default=None)

    def give(self, source: str, notice: Notice | None) -> None:
        """What a source says now; None: nothing, or no longer."""
        before = self.current
        if notice is None:
            self._given.pop(source, None)
        else:
            self._given[source] = notice
        if self.current != before:
            said = f"goes away: {self.current.reason}" if self.current else "stays after all"
            _log.warning("this host %s", said)
            self._on_change(self.current)

    async def watch(self) -> None:
        """Looks at the file and asks the URL until it is cancelled."""
        over = threading.Event()
        if self._url:
            asking = (self._url, asyncio.get_running_loop(), over)
            threading.Thread(target=self._ask_on, args=asking, name="strata-notice", daemon=True).start()
        try:
            while self._file is not None:
                self._look(self._file)
                await asyncio.sleep(_FILE_S)
            await asyncio.Event().wait()
        finally:
            over.set()

    def _look(self, file: Path) -> None:
        try:
            with open(file, "rb", opener=_open_at_once) as content:  # Path.open takes none
                text = content.read(_MAX_BYTES).decode(errors="replace")
            written_at = file.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            self.give("file", None)
            return
        except OSError as error:  # it is there, which is what counts
            text, written_at = "", time.time()
            _log.debug("%s cannot be read: %s", file, error)
        notice = self._read("file", text, f"notice file {file}", written_at)
        self.give("file", notice)

    def _read(self, source: str, text: str, where: str, since: float) -> Notice | None:
        """Read once for every text, so that a span of seconds ends where it ended before."""
        seen = self._seen.get(source)
        if seen is None or seen[0] != text:
            seen = self._seen[source] = (text, read_notice(text, where, since))
        return seen[1]

    # --- the URL, on its own thread

    def _ask_on(self, url: str, loop: asyncio.AbstractEventLoop, over: threading.Event) -> None:
        told = ""
        while not over.is_set():
            try:
                text = _fetch(url)
                if text is not None:
                    _check_answer(text)
                loop.call_soon_threadsafe(self._hear, text)
            except RuntimeError:  # the loop is closed
                return
            except (OSError, HTTPException, ValueError) as error:  # whoever does not answer, gives no notice
                if told != str(error):
                    told = str(error)
                    _log.warning("the notice URL says nothing: %s", told)
            over.wait(_URL_S)

    def _hear(self, text: str | None) -> None:
        self.give("url", None if text is None else self._read("url", text, f"notice URL {self._url}", time.time()))


def _open_at_once(path: str, flags: int) -> int:
    """A pipe that nobody writes to is opened, too: to wait for its writer would stop the agent."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_notice(text: str, where: str, since: float) -> Notice | None:
    """A text that is there is a notice, unless it says that there is none. Its deadline is a time (ISO 8601 or Unix
    seconds) or a span of seconds from `since` on, alone or as `deadline` or `time` of a JSON object."""
    text = text.strip()
    if text.upper() in _NOTHING:
        return None
    told: Any = text
    with contextlib.suppress(ValueError, RecursionError):  # no JSON: a time, or words
        told = json.loads(text)
    reason = where
    if isinstance(told, dict):
        words = told.get("reason") or told.get("action")
        if isinstance(words, str):
            reason = f"{words.encode(errors='replace').decode()[:_MAX_REASON]} ({where})"
        told = next((told[name] for name in _DEADLINES if name in told), None)
    return Notice(reason=reason, deadline=_time(told, since))


def _time(told: Any, since: float) -> float | None:
    if isinstance(told, str):
        try:
            told = float(told)
        except ValueError:
            try:
                moment = datetime.fromisoformat(told)
            except ValueError:
                return None
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 < told < 1e11:
        return None
    return since + told if told < _SECONDS else float(told)


# --- HTTP


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


# Metadata is on the host's own network: no proxy leads there.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


def _fetch(url: str) -> str | None:
    """The answer's text; None when there is nothing. Raises OSError, HTTPException or ValueError for all that is no
    such answer."""
    try:
        return _answer(urllib.request.Request(url, headers={"Metadata-Flavor": "Google"}))  # noqa: S310  # checked
    except urllib.error.HTTPError as error:
        if error.code in _NOT_THERE:
            return None
        if error.code != 401:  # Amazon's, version 2, asks for a token
            raise
    parts = urlsplit(url)
    token = _answer(
        urllib.request.Request(  # noqa: S310  # as above
            f"{parts.scheme}://{parts.netloc}{_IMDS_TOKEN}",
            method="PUT",
            headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"},
        )
    )
    try:
        return _answer(urllib.request.Request(url, headers={"X-aws-ec2-metadata-token": token}))  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code in _NOT_THERE:
            return None
        raise


def _answer(request: urllib.request.Request) -> str:
    deadline = time.monotonic() + 2 * _TIMEOUT_S
    body = b""
    with cast(HTTPResponse, _opener.open(request, timeout=_TIMEOUT_S)) as response:
        while part := response.read1(_MAX_BYTES):
            body += part
            if len(body) > _MAX_BYTES or time.monotonic() > deadline:
                raise ValueError("its answer is too long or too slow for a notice")
    return body.decode().strip()


def _check_answer(text: str) -> str:
    """A page that somebody else put there is no notice: it is JSON, a time, or a word as TERMINATE."""
    if not (text.startswith("{") or _WORD.match(text) or _time(text, 0.0) is not None):
        raise ValueError(f"its answer is neither JSON nor a time: {text[:60]!r}")
    return text

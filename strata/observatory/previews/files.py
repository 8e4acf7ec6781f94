"""Looks into data files for the dashboard: counts for a registration, samples for a preview. Child processes do it,
because scanning a CSV is CPU work that must not run beside the live view. There are two at most, kept warm; they end
with the observatory, whatever ends it.
"""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from strata.error_codes import rebuild_error
from strata.errors import Busy, DataError, DeadlineExceeded, StrataError

__all__ = ["DataFiles", "FileReaders"]

_CHILDREN = 2
_MAX_WAITING = 16
_DEADLINE_S = 120.0
_KEEP_S = 60.0
_MAX_KEPT = 128

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """What a dataset's files hold."""

    format: str
    total_samples: int
    files: tuple[tuple[str, int], ...]


class FileReaders:
    """Up to two children, each with one question at a time; more questions wait, and beyond a bound are refused.

    Previews are kept for a minute, and the same one is never read twice at once.
    """

    def __init__(self, *, idle_s: float = 300.0) -> None:
        self._idle_s = idle_s
        self._threads = ThreadPoolExecutor(_CHILDREN, thread_name_prefix="strata-files")
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._children: set[_Child] = set()
        self._num_asked = 0
        self._kept: OrderedDict[str, tuple[float, Answer]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[Answer]] = {}

    async def start(self) -> None:
        """Children are started by the first question."""

    async def stop(self) -> None:
        for child in list(self._children):
            child.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def count(self, path: str, format_name: str) -> DataFiles:
        """Reads footers or scans, whatever the format needs. Raises DataError that names the file."""
        found = await self._ask({"do": "count", "path": path, "format": format_name})
        files = tuple((name, count) for name, count in found["files"])
        return DataFiles(found["format"], found["total_samples"], files)

    async def preview(self, path: str, format_name: str, *, count: int, epoch: int, seed: int) -> Answer:
        """The first samples of an epoch in training order, made small: strata.data.Preview as a dict."""
        request = {"do": "peek", "path": path, "format": format_name, "count": count, "epoch": epoch, "seed": seed}
        key = json.dumps(request)
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() - kept[0] < _KEEP_S:
            return kept[1]
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.ensure_future(self._read(key, request))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(task)  # one who goes away must not take it from the others

    async def _read(self, key: str, request: Answer) -> Answer:
        answer = await self._ask(request)
        self._kept[key] = (time.monotonic(), answer)
        self._kept.move_to_end(key)
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return answer

    async def _ask(self, request: Answer) -> Answer:
        if self._num_asked >= _CHILDREN + _MAX_WAITING:
            raise Busy(
                f"{self._num_asked} other questions about data files are being read or wait",
                hint="Ask again in a few seconds.",
            )
        self._num_asked += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._asked, request)
        finally:
            self._num_asked -= 1
        if "error" in answer:
            code, text, hint = (answer["error"][name] for name in ("code", "message", "hint"))
            raise rebuild_error(code, text, hint=hint) or DataError(text, hint=hint)
        return answer

    def _asked(self, request: Answer) -> Answer:
        """On one of the threads. A child that ended because nobody asked it is replaced: that is no failure."""
        while True:
            child = self._free()
            try:
                answer = child.ask(request)
            except _EndedIdle:
                self._drop(child)
            except BaseException:
                self._drop(child)
                raise
            else:
                self._idle.put(child)
                return answer

    def _free(self) -> "_Child":
        try:
            return self._idle.get_nowait()
        except Empty:
            child = _Child(self._idle_s)
            self._children.add(child)
            return child

    def _drop(self, child: "_Child") -> None:
        self._children.discard(child)
        child.close()


class _EndedIdle(Exception):  # no error
    """The child had ended by itself, before the question reached it."""


class _Child:
    """One process that answers a line of JSON with another, and ends when it was not asked for `idle_s`."""

    def __init__(self, idle_s: float) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        self._process = subprocess.Popen(
            [sys.executable, "-m", "strata.observatory.previews.files", str(idle_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,  # or closing the pipe of a dead child would raise for what is still in the buffer
        )

    def ask(self, request: Answer) -> Answer:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:  # it is dead: its end says more than our pipe
            raise self._died(request) from None
        deadline, line = time.monotonic() + _DEADLINE_S, bytearray()
        while not line.endswith(b"\n"):
            ready = _readable(stdout.fileno(), deadline - time.monotonic())
            if not ready:
                raise DeadlineExceeded(f"{request['path']} was not read within {_DEADLINE_S:.0f} s")
            part = os.read(stdout.fileno(), 1 << 20)
            if not part:
                raise self._died(request)
            line += part
        answer: Answer = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            if file is not None:
                file.close()

    def _died(self, request: Answer) -> Exception:
        code = self._process.wait()
        if code == 0:
            return _EndedIdle()
        how = f"exit code {code}" if code >= 0 else f"killed by signal {-code} ({_signal_name(-code)})"
        self._errors.seek(0)
        said = self._errors.read()[-300:].decode(errors="replace").strip()
        return DataError(
            f"{request['path']} cannot be read: the process that reads files ended ({how})"
            + (f": {said}" if said else ""),
            hint="Ask again. If it happens every time, the file or the memory of this machine is the reason.",
        )


def _readable(file: int, wait_s: float) -> bool:
    poll = select.poll()  # select() itself cannot look at a file number of 1,024 or more
    poll.register(file, select.POLLIN)
    return bool(poll.poll(max(0.0, wait_s) * 1e3))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


# --- the child


def _answer(request: Answer) -> Answer:
    from strata.data import build_manifest, peek

    if request["do"] == "peek":
        path, wanted = request["path"], request["format"] or None
        found = peek(path, request["count"], request["epoch"], format=wanted, seed=request["seed"])
        return found.to_dict()
    manifest = build_manifest(request["path"], request["format"] or None)
    files = [[ref.uri, index.num_rows] for ref, index in zip(manifest.files, manifest.indexes, strict=True)]
    return {"format": manifest.format, "total_samples": manifest.num_samples, "files": files}


def _safe_answer(request: Answer) -> Answer:
    try:
        return _answer(request)
    except StrataError as error:
        return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    except Exception as error:  # a bug, or a file that no reader expected: this question fails, the child goes on
        text = f"{request['path']} cannot be read: {type(error).__name__}: {str(error)[:300]}"
        return {"error": {"code": DataError.code, "message": text, "hint": ""}}


def _listen(lines: "SimpleQueue[bytes]") -> None:
    """The pipe ends when the observatory does, even by kill -9: then nobody wants the answer any more."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _main(idle_s: float) -> None:
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        try:
            request = json.loads(lines.get(timeout=idle_s))
        except Empty:
            os._exit(0)  # without the libraries' exit handlers, which have crashed before
        sys.stdout.buffer.write(json.dumps(_safe_answer(request), default=str).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main(float(sys.argv[1]))

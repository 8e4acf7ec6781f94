"""The test's end of a plain worker process: asks it to make calls, stops it, lets it go on, kills it."""

import json
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.waiting import eventually

__all__ = ["Pending", "PlainClient", "PlainFailure"]


class PlainFailure(Exception):
    """What a client without our SDK sees: a status and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Pending:
    """A call that the worker is making."""

    def __init__(self, client: "PlainClient", number: int) -> None:
        self._client = client
        self._number = number

    @property
    def done(self) -> bool:
        return self._number in self._client.answers

    def result(self, within_s: float = 15.0) -> Any:
        answer = eventually("an answer", lambda: self._client.answers.get(self._number), within_s=within_s)
        if "code" in answer:
            raise PlainFailure(answer["code"], answer["message"])
        return answer["reply"]


class PlainClient:
    """One process of plain_worker.py. Use as a context manager."""

    def __init__(self, script: Path, stubs: Path, address: str) -> None:
        command = [sys.executable, str(script), str(stubs), address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers: dict[int, dict[str, Any]] = {}
        self._numbers = count()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "PlainClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.join(10)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            self.answers[answer["id"]] = answer

    def start(self, call: str, **request: Any) -> Pending:
        number = next(self._numbers)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "call": call, "request": request}) + "\n")
        self.process.stdin.flush()
        return Pending(self, number)

    def call(self, call: str, **request: Any) -> Any:
        return self.start(call, **request).result()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

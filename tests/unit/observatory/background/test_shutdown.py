"""Stopping in time: a step that hangs is named and left behind, and a process that hangs is ended with its stacks."""

import asyncio
import signal
import subprocess
import sys

import pytest

from strata.observatory.background.shutdown import Teardown


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_step_that_hangs_is_named_and_the_others_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[str] = []

    async def stop() -> None:
        taken.append("first")

    teardown = Teardown()
    teardown.callback(taken.append, "at the bottom")
    teardown.step("first", stop)
    teardown.step("the one that hangs", _for_ever, 0.05)
    async with asyncio.timeout(60):
        await teardown.aclose()
    assert taken == ["first", "at the bottom"]
    assert "the one that hangs did not stop within 0.1 s" in caplog.text
    assert "_for_ever (test_shutdown.py" in caplog.text, "the place is named"


async def test_many_steps_that_hang_share_one_limit(caplog: pytest.LogCaptureFixture) -> None:
    teardown = Teardown(total_s=0.1)
    for number in range(3):
        teardown.step(f"part {number}", _for_ever, 60.0)
    async with asyncio.timeout(60):
        await teardown.aclose()
    assert len(caplog.records) == 3


async def test_a_step_that_fails_is_not_hidden_and_the_others_are_taken() -> None:
    taken: list[str] = []

    async def fail() -> None:
        raise RuntimeError("this one fails")

    async with asyncio.timeout(60):
        teardown = Teardown()
        teardown.callback(taken.append, "first")
        teardown.step("second", fail)
        with pytest.raises(RuntimeError, match="this one fails"):
            await teardown.aclose()
    assert taken == ["first"]


async def test_steps_survive_the_handing_over_of_the_stack() -> None:
    taken: list[str] = []

    async def stop() -> None:
        taken.append("stopped")

    async with Teardown() as teardown:
        teardown.step("part", stop)
        kept = teardown.pop_all()
    assert taken == []
    await kept.aclose()
    assert taken == ["stopped"]


_HANGS = """
import asyncio, threading
from strata.observatory.background.shutdown import end_surely
async def main():
    end_surely(asyncio.get_running_loop(), 2.0)
    {how}
asyncio.run(main(), debug=False)
"""


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("await asyncio.Event().wait()", "Event.wait"),
        ("threading.Event().wait()", "threading.py"),
        ("threading.Thread(target=threading.Event().wait).start()", "_shutdown"),  # the interpreter waits for it
    ],
    ids=["a-task", "the-loop", "a-thread"],
)
def test_a_process_that_does_not_end_is_ended_and_says_where_it_was(how: str, told: str) -> None:
    ended = subprocess.run([sys.executable, "-c", _HANGS.format(how=how)], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert "Timeout (0:00:02)!" in ended.stderr
    assert told in ended.stderr


_LISTENS = """
import asyncio, sys
from strata.observatory.background.shutdown import print_stacks_on_signal
async def main():
    print_stacks_on_signal(asyncio.get_running_loop())
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


def test_a_signal_prints_threads_and_tasks_and_changes_nothing() -> None:
    command = [sys.executable, "-c", _LISTENS]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            seen = ""
            while "Tasks:" not in seen:
                seen += process.stderr.readline()
            assert "most recent call first" in seen
            assert "main (<string>:" in process.stderr.readline()
        process.communicate("", timeout=30)
    assert process.returncode == 0

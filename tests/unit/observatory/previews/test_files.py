"""Children that look into data files: few, warm, bounded, named when they die, and gone with their parent."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from strata.errors import Busy, DataError
from strata.observatory.previews.files import FileReaders
from tests.support.waiting import eventually

ROWS = 500


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i * 0.5}\n" for i in range(ROWS)))
    return str(path)


@pytest.fixture
async def readers() -> AsyncIterator[FileReaders]:
    readers = FileReaders()
    yield readers
    await readers.stop()


def children() -> list[psutil.Process]:
    """Of this process, those that read files."""
    found = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in found if "strata.observatory.previews.files" in " ".join(child.cmdline())]


async def test_one_child_answers_many_questions(readers: FileReaders, data: str) -> None:
    counted = await readers.count(data, "csv")
    assert (counted.total_samples, counted.format) == (ROWS, "csv")
    (child,) = children()
    preview = await readers.preview(data, "", count=3, epoch=0, seed=1)
    assert len(preview["rows"]) == 3
    assert children() == [child]


async def test_sixty_at_once_start_two_children_and_the_same_preview_is_read_once(
    readers: FileReaders, data: str
) -> None:
    same = [readers.preview(data, "csv", count=8, epoch=0, seed=0) for _ in range(60)]
    found = await asyncio.gather(*same)
    assert all(one is found[0] for one in found)
    assert len(children()) == 1
    different = [readers.preview(data, "csv", count=8, epoch=0, seed=seed) for seed in range(1, 61)]
    answers = await asyncio.gather(*different, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Busy)]
    assert 0 < len(refused) < 60, "what has no place in the queue is told so, the rest is answered"
    assert all(isinstance(answer, dict | Busy) for answer in answers)
    assert len(children()) <= 2


async def test_what_cannot_be_read_says_why_and_the_child_goes_on(readers: FileReaders, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv"):
        await readers.count(str(tmp_path / "nothing.csv"), "csv")
    (child,) = children()
    (tmp_path / "bad.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(DataError, match=r"bad\.parquet"):
        await readers.count(str(tmp_path / "bad.parquet"), "parquet")
    assert children() == [child]


async def test_a_child_that_is_killed_is_named_with_its_signal(readers: FileReaders, tmp_path: Path) -> None:
    pipe = tmp_path / "endless.csv"
    os.mkfifo(pipe)  # a file that never answers: the child is in the middle of its work
    asked = asyncio.ensure_future(readers.count(str(pipe), "csv"))
    child = (await asyncio.to_thread(eventually, "a child", children, within_s=30))[0]
    await asyncio.to_thread(eventually, "it reads", lambda: child.num_threads() > 2 or asked.done(), within_s=60)
    child.send_signal(signal.SIGKILL)
    with pytest.raises(DataError, match=r"killed by signal 9 \(SIGKILL\)"):
        await asked


async def test_a_child_that_had_gone_home_is_replaced(data: str) -> None:
    readers = FileReaders(idle_s=1.0)
    await readers.count(data, "csv")
    await asyncio.to_thread(eventually, "its end", lambda: not children(), within_s=60)
    assert (await readers.count(data, "csv")).total_samples == ROWS
    await readers.stop()


def test_children_die_with_their_parent(data: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from strata.observatory.previews.files import FileReaders\n"
        "async def main():\n"
        "    await FileReaders().count(sys.argv[1], 'csv')\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, data], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"ready\n"
        (child,) = psutil.Process(parent.pid).children()
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        eventually("the child's end", lambda: not child.is_running(), within_s=30)

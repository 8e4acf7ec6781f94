"""Files of runs in the store beside the checkpoints: bounded, each once, gone with the run or after its days."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from strata.clock import SystemClock
from strata.config import Settings
from strata.errors import InvalidArgument, NotFound, Refused
from strata.observatory.background.setaside import SetAside
from strata.observatory.media.keeper import MediaKeeper
from strata.observatory.media.reader import evenly
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.media import file_name
from tests.support.waiting import eventually

CONTENT = b"a picture"
NAME = file_name(CONTENT, "png")


def keeper(folder: Path, deleted: set[str] | None = None, **settings: Any) -> MediaKeeper:
    clock = SystemClock()
    aside = SetAside(clock, lambda findings: None)
    return MediaKeeper(Settings(data_dir=folder, **settings), deleted or set(), clock, aside)


def batch(run_id: str, *contents: bytes, name: str = "") -> Batch:
    message = Batch()
    text = message.texts.add(run_id=run_id, metric="m", kind="image", text="{}")
    for content in contents:
        text.files.add(name=name or file_name(content, "png"), content=content)
    return message


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def stored(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.rglob("*.png"))


def test_files_are_kept_once_and_taken_out_of_the_batch(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        kept = keeper(tmp_path)
        for _ in range(2):
            message = batch("r", CONTENT)
            await kept.keep(message)
            assert [list(text.files) for text in message.texts] == [[]]
        return await kept.get("r", NAME)

    assert run(scenario()) == CONTENT
    assert stored(tmp_path) == ["r"]


def test_what_is_not_there_or_never_was_a_file_is_said(tmp_path: Path) -> None:
    kept = keeper(tmp_path)
    with pytest.raises(NotFound, match="has no file"):
        run(kept.get("r", NAME))
    for name in ("../../token", "x.png", NAME.upper(), NAME + "/"):
        with pytest.raises(InvalidArgument, match="is no file of a run"):
            run(kept.get("r", name))
    with pytest.raises(InvalidArgument, match="others than its name says"):
        run(kept.keep(batch("r", b"other bytes", name=NAME)))


def test_a_run_has_room_for_so_many_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        kept = keeper(tmp_path, media_run_bytes=20)
        await kept.keep(batch("r", CONTENT))
        await kept.keep(batch("r", CONTENT))  # the same bytes take no more room
        with pytest.raises(Refused, match="29 bytes, 20 are kept"):
            await kept.keep(batch("r", b"x" * 20))
        await kept.keep(batch("other", b"x" * 20))
        with pytest.raises(Refused):  # one that starts anew counts what is there
            await keeper(tmp_path, media_run_bytes=20).keep(batch("r", b"x" * 20))

    run(scenario())


def test_files_go_with_their_run_and_after_their_days(tmp_path: Path) -> None:
    async def scenario() -> None:
        kept = keeper(tmp_path)
        for run_id in ("a", "b", "c"):
            await kept.keep(batch(run_id, CONTENT))
        await kept.drop("a")
        await kept.drop("never")

    run(scenario())
    assert stored(tmp_path) == ["b", "c"]
    [old] = (tmp_path / "checkpoints" / ".media" / "c").iterdir()
    os.utime(old, (0, 0))

    async def sweep() -> None:
        kept = keeper(tmp_path, {"b"}, retention_days=1)
        await kept.start()
        await asyncio.to_thread(eventually, "the sweep", lambda: not stored(tmp_path))
        await kept.stop()

    run(sweep())


def test_a_file_that_is_logged_again_gets_more_days(tmp_path: Path) -> None:
    run(keeper(tmp_path).keep(batch("r", CONTENT)))
    [file] = (tmp_path / "checkpoints" / ".media" / "r").iterdir()
    os.utime(file, (0, 0))
    run(keeper(tmp_path, retention_days=1).keep(batch("r", CONTENT)))
    assert file.stat().st_mtime > 0


def test_evenly_keeps_both_ends() -> None:
    assert evenly(range(10), 4) == [0, 3, 6, 9]
    assert evenly(range(3), 5) == [0, 1, 2]
    assert evenly(range(3), 1) == [2]

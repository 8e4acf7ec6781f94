"""Tasks that live as long as the process: ended surely, and never in silence."""

import asyncio
from typing import Any

import pytest

from strata.observatory.background import part as background


async def _deaf(times: int) -> None:
    """Loses that many cancellations, as a library might."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            times -= 1
            if times < 0:
                raise


async def test_a_task_that_loses_its_cancellation_is_cancelled_again(caplog: pytest.LogCaptureFixture) -> None:
    task = background.spawn(_deaf(1), "hard of hearing")
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await background.cancel(task)
    assert task.cancelled()
    assert "hard of hearing goes on though it was cancelled" in caplog.text


async def test_a_canceller_can_itself_be_cancelled() -> None:
    deaf = background.spawn(_deaf(1), "deaf")
    await asyncio.sleep(0)
    canceller = asyncio.create_task(background.cancel(deaf))
    await asyncio.sleep(0)
    canceller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceller
    await background.cancel(deaf)


async def test_a_death_is_reported_once_and_cancelling_the_dead_is_nothing() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def die() -> None:
        raise RuntimeError("oops")

    task = background.spawn(die(), "short life")
    await asyncio.wait([task])
    await background.cancel(task)
    await background.cancel(None)
    assert [context[background.FATAL] for context in reported] == ["short life"]

"""The stream's order and the ring behind it: resumed exactly, or told to resync."""

import asyncio

from strata.clock import ManualClock
from strata.observatory.stream.broadcaster import PING, Broadcaster
from strata.observatory.stream.ring import Filter, Ring, RunPart


def make(ring: Ring | None = None) -> tuple[Broadcaster, ManualClock]:
    clock = ManualClock()
    return Broadcaster(lambda wanted: b'{"runs":"%b"}' % str(wanted.runs).encode(), clock, ring), clock


def part(text: bytes) -> RunPart:
    return RunPart(b"", lambda: text, len(text))


async def test_a_client_gets_a_snapshot_and_then_everything_in_order() -> None:
    stream, _ = make()
    stream.publish("state", {"n": 0})
    client = stream.stream(Filter(), None)
    first = await anext(client)
    assert b"event: snapshot\nid: %b:1\n" % stream.epoch.encode() in first
    stream.publish("state", {"n": 1})
    stream.publish_delta({"a": part(b"[1]")})
    stream.flush()
    second = await anext(client)
    assert second.count(b"event: ") == 2
    assert second.index(b'{"n":1}') < second.index(b'"points":[[1]]')
    await client.aclose()
    assert stream.num_clients == 0


async def test_a_cursor_in_the_ring_gets_exactly_what_it_missed() -> None:
    stream, _ = make()
    for number in range(5):
        stream.publish("state", {"n": number})
    client = stream.stream(Filter(), f"{stream.epoch}:3")
    opening = await anext(client)
    assert b"snapshot" not in opening
    assert [b'{"n":%d}' % number in opening for number in range(5)] == [False, False, False, True, True]
    await client.aclose()


async def test_cursors_that_are_gone_or_strange_get_resync_and_a_snapshot() -> None:
    stream, _ = make(Ring(max_events=3))
    for number in range(10):
        stream.publish("state", {"n": number})
    for cursor in (f"{stream.epoch}:2", "older:9", f"{stream.epoch}:99", "nonsense", f"{stream.epoch}:-1"):
        client = stream.stream(Filter(), cursor)
        opening = await anext(client)
        assert opening.index(b"event: resync") < opening.index(b"event: snapshot"), cursor
        await client.aclose()


async def test_a_slow_client_is_told_to_resync_and_slows_nobody() -> None:
    stream, _ = make(Ring(max_events=4))
    slow, quick = stream.stream(Filter(), None), stream.stream(Filter(), None)
    await anext(slow)
    await anext(quick)
    for number in range(10):
        stream.publish("state", {"n": number})
        stream.flush()
        assert b'{"n":%d}' % number in await anext(quick)
    assert b"event: resync" in await anext(slow)
    assert stream.resyncs == 1
    await slow.aclose()
    await quick.aclose()


async def test_runs_and_topics_are_filtered() -> None:
    stream, _ = make()
    only_a = Filter(runs=frozenset({"a"}), topics=frozenset({"metrics"}))
    client = stream.stream(only_a, None)
    await anext(client)
    stream.publish("state", {"n": 1}, topic="state")
    stream.publish_delta({"a": part(b"[1]"), "b": part(b"[2]")})
    stream.publish("alert", {"alerts": []})
    stream.flush()
    data = await anext(client)
    assert b"event: state" not in data
    assert b'"points":[[1]]' in data
    assert b"event: alert" in data
    await client.aclose()


async def test_silence_is_filled_with_pings() -> None:
    stream, clock = make()
    client = stream.stream(Filter(), None)
    await anext(client)
    waiting = asyncio.ensure_future(anext(client))
    await asyncio.sleep(0)
    stream.flush()
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(15.1)
    stream.flush()
    assert await asyncio.wait_for(waiting, 1) == PING
    await client.aclose()


async def test_a_resync_for_all_is_followed_by_a_snapshot() -> None:
    stream, _ = make()
    client = stream.stream(Filter(), None)
    await anext(client)
    stream.resync("history was loaded")
    stream.flush()
    data = await anext(client)
    assert data.index(b"event: resync") < data.index(b"event: snapshot")
    await client.aclose()


async def test_closing_ends_the_streams() -> None:
    stream, _ = make()
    client = stream.stream(Filter(), None)
    await anext(client)
    stream.close()
    assert [chunk async for chunk in client] == []


async def test_nobody_gets_a_picture_while_history_is_loaded() -> None:
    """A page that comes back with its cursor would replace what it shows by less."""
    stream, _ = make()
    stream.hold()
    client, state_only = stream.stream(Filter(), "older:9"), stream.stream(Filter(topics=frozenset({"state"})), None)
    assert await anext(client) == PING
    opening = asyncio.create_task(anext(client))
    assert b"retry" in await anext(state_only)  # has no curves that could be half there
    stream.publish("state", {"n": 1})
    await asyncio.sleep(0)
    assert not opening.done()
    stream.release()
    assert b"id: %b:1\n" % stream.epoch.encode() in await opening
    await client.aclose()
    await state_only.aclose()

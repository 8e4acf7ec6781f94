"""The stream of a real server: snapshot plus deltas is the store, whatever happens to the connection."""

import asyncio
import os
import random
from functools import partial

import grpc
import httpx
import pytest

from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient

_SEEDS = int(os.environ.get("STREAM_SEEDS", "2"))


async def post(process: ObservatoryProcess, run_id: str, points: list[dict[str, object]], batch_id: str = "") -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        body = {"points": points, "batch_id": batch_id}
        response = await client.post(f"{process.http}/api/runs/{run_id}/points", json=body)
        assert response.status_code == 200, response.text


def stored(process: ObservatoryProcess, run_id: str, metric: str) -> list[tuple[int, int, float | None]]:
    """Straight from the store: a step range is never answered by the cache."""
    series = process.get(f"/metrics/{run_id}", metric=metric, from_step=0)["series"]
    return list(zip(series[0]["steps"], series[0]["times"], series[0]["values"], strict=True)) if series else []


def backlog(process: ObservatoryProcess) -> int:
    return int(process.get("/api/status")["spool_backlog_bytes"])


def _has(client: StreamClient, run_id: str, metric: str, count: int) -> bool:
    return len(client.of(run_id, metric)) == count


def flood(process: ObservatoryProcess, number: int) -> None:
    """Points of a run that nobody compares, about 14 MB of deltas: more than a client may be behind."""
    series, count = 250, 60_000
    batch = Batch()
    for index in range(series):
        batch.series.add(index=index, run_id="flood", metric=f"m{index}", device=65535)
    batch.points.series.extend(place % series for place in range(count))
    batch.points.step.extend(number * count + place // series for place in range(count))
    batch.points.event_time_ms.extend([1_794_000_000_000] * count)
    batch.points.value.extend(place / 7 for place in range(count))
    with grpc.insecure_channel(process.telemetry) as channel:
        for part in range(6):
            batch.batch_id = f"flood-{number}-{part}"
            TelemetryStub(channel).ReportOnce(batch, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, _SEEDS + 1))
async def test_no_point_is_lost_or_doubled_under_any_disconnect(
    shared_observatory: ObservatoryProcess, seed: int
) -> None:
    """Random writes, repeats of batches, drops of the connection with and without its cursor, a client that does not
    read for a while. Takes about 8 s each: the slow client needs tens of megabytes to fall behind."""
    chance = random.Random(seed)
    run_id, metrics = f"prop-{seed}", ["loss", "lr", "acc"]
    client = StreamClient(shared_observatory.http)
    await client.open()
    steps = dict.fromkeys(metrics, 0)
    slow_at = chance.randrange(10, 35)
    for number in range(40):
        if number == slow_at:
            client.stall()
            await asyncio.to_thread(flood, shared_observatory, seed)
        if number == slow_at + 3:
            client.go_on()
        match chance.random():
            case x if x < 0.6:
                metric = chance.choice(metrics)
                points: list[dict[str, object]] = []
                for _ in range(chance.randint(1, 12)):
                    steps[metric] += chance.choice([0, 1, 1, 3])
                    value = chance.choice([chance.random(), chance.random(), None])
                    when = 1_794_000_000 + len(points) + number * 100
                    points.append({"metric": metric, "step": steps[metric], "value": value, "event_time": when})
                for _ in range(chance.choice([1, 1, 2])):
                    await post(shared_observatory, run_id, points, f"{run_id}-{number}")
            case x if x < 0.8:
                await client.close()
                await client.open(resume=True)
            case x if x < 0.9:
                await client.close()
                await client.open(resume=False)
            case _:
                await asyncio.sleep(0.1)  # lets ticks fall between the actions; the order of both is what is tested
    await asyncio.to_thread(wait_until, lambda: backlog(shared_observatory) == 0, "an empty spool")
    for metric in metrics:
        expected = await asyncio.to_thread(stored, shared_observatory, run_id, metric)
        await client.wait_for(partial(_has, client, run_id, metric, len(expected)))
        assert sorted(client.of(run_id, metric), key=str) == sorted(expected, key=str)
        fresh = StreamClient(shared_observatory.http)
        await fresh.open()
        await fresh.wait_for(partial(bool, fresh.events))
        assert sorted(fresh.of(run_id, metric), key=str) == sorted(expected, key=str)
        await fresh.close()
    await client.close()


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_told_to_resync_and_misses_nothing(
    shared_observatory: ObservatoryProcess,
) -> None:
    """Takes about 5 s: the kernel's buffers have to fill up first."""
    client = StreamClient(shared_observatory.http)
    await client.open()
    await post(shared_observatory, "slow", [{"metric": "loss", "step": 0, "value": 1.0}])
    await client.wait_for(lambda: client.count("slow") == 1)
    client.stall()
    for number in range(100, 104):
        await asyncio.to_thread(flood, shared_observatory, number)
        await post(shared_observatory, "slow", [{"metric": "loss", "step": number, "value": 1.0}])
        await asyncio.sleep(0.3)  # a tick lies between
    seen = len(client.events)
    client.go_on()
    await client.wait_for(lambda: client.count("slow") == 5)
    assert any(name == "resync" and "too slowly" in body["reason"] for name, body in client.events[seen:])
    await post(shared_observatory, "slow", [{"metric": "loss", "step": 200, "value": 1.0}])
    await client.wait_for(lambda: client.count("slow") == 6)
    assert [step for step, _, _ in client.of("slow", "loss")] == [0, *range(100, 104), 200]
    await client.close()


async def test_an_unknown_cursor_gets_resync_and_then_a_snapshot(shared_observatory: ObservatoryProcess) -> None:
    client = StreamClient(shared_observatory.http)
    client.last_id = "another-epoch:17"
    await client.open()
    await client.wait_for(lambda: len(client.events) >= 2)
    assert [name for name, _ in client.events[:2]] == ["resync", "snapshot"]
    assert "reason" in client.events[0][1]
    await client.close()


async def test_runs_and_topics_narrow_the_stream(shared_observatory: ObservatoryProcess) -> None:
    client = StreamClient(shared_observatory.http, params={"runs": "only-a", "topics": "metrics"})
    await client.open()
    await post(shared_observatory, "only-b", [{"metric": "loss", "step": 1, "value": 1.0}])
    await post(shared_observatory, "only-a", [{"metric": "loss", "step": 1, "value": 2.0}])
    await client.wait_for(lambda: client.count("only-a") == 1)
    assert client.count("only-b") == 0
    assert {name for name, _ in client.events} <= {"snapshot", "delta", "runs_meta", "resync"}
    await client.close()


@pytest.mark.slow
async def test_history_is_complete_after_a_restart(observatory: ObservatoryProcess) -> None:
    """Takes about 6 s: two starts of real processes and 5,000 points."""
    points: list[dict[str, object]] = [
        {"metric": "loss", "step": step, "value": 1.0 / (step + 1), "event_time": 1_794_000_000 + step}
        for step in range(5_000)
    ]
    for start in range(0, 5_000, 1_000):
        await post(observatory, "long", points[start : start + 1_000])
    await post(observatory, "short", points[:300])
    observatory.stop()
    observatory.start()
    await asyncio.to_thread(wait_until, lambda: len(observatory.get("/runs")) == 2, "both runs in the list")

    def total(run_id: str) -> int:
        return sum(series["total_points"] for series in observatory.get(f"/metrics/{run_id}")["series"])

    await asyncio.to_thread(wait_until, lambda: total("long") == 5_000 and total("short") == 300, "the whole history")
    client = StreamClient(observatory.http)
    await client.open()
    await client.wait_for(lambda: client.count("short") == 300)
    long = client.of("long", "loss")
    assert len(long) <= 2_000
    assert max(value for _, _, value in long if value is not None) == 1.0
    assert long[-1][0] == 4_999
    await post(observatory, "short", [{"metric": "loss", "step": 300, "value": 0.5}])
    await client.wait_for(lambda: client.count("short") == 301)
    await client.close()


@pytest.mark.slow
async def test_a_sparse_stream_and_the_points_asked_for_are_the_whole(observatory: ObservatoryProcess) -> None:
    """18,000 points are named in an outline; an answer's total says where in the stream it was read."""
    names = [f"m/{number}" for number in range(20)]
    points: list[dict[str, object]] = [
        {"metric": name, "step": step, "value": None if step == 7 else step / 3, "event_time": 1_794_000_000 + step}
        for name in names
        for step in range(900)
    ]
    await post(observatory, "wide", points)
    client = StreamClient(observatory.http, params={"sparse": "1"})
    await client.open()
    await client.wait_for(partial(bool, client.events))
    name, snapshot = client.events[0]
    outline = snapshot["outline"]
    assert name == "snapshot"
    assert snapshot["series"] == []
    assert sorted(outline["metrics"]) == sorted(names)
    assert set(outline["total_points"]) == {900}
    ids = dict(zip((outline["metrics"][at] for at in outline["metric"]), outline["id"], strict=True))
    client.points.update(
        {number: [] for number in outline["id"]}
    )  # the model has no outlines: what comes later is kept
    await post(observatory, "wide", [{"metric": "m/3", "step": 900, "value": 5.0, "event_time": 1_794_000_900}])
    asked = f"{ids['m/3']},{ids['m/4']},999999"
    answer = await asyncio.to_thread(observatory.get, "/api/series", ids=asked, points=2000)
    assert answer["epoch"] == snapshot["epoch"]
    three, four = answer["series"]
    assert four["total_points"] == len(four["steps"]) == 900
    assert four["min"] is four["max"] is four["bad"] is None
    assert four["values"][6:9] == [2.0, None, 8 / 3]
    assert four["nan_count"] == 1
    await client.wait_for(partial(bool, client.points[ids["m/3"]]))
    later = client.points[ids["m/3"]][three["total_points"] - 900 :]
    assert three["steps"] + [step for step, _, _ in later] == list(range(901))
    coarse = (await asyncio.to_thread(observatory.get, "/api/series", ids=str(ids["m/3"]), points=64))["series"][0]
    assert len(coarse["steps"]) <= 64
    assert coarse["min"][0] <= coarse["max"][0]
    assert sum(coarse["bad"]) == 1
    assert coarse["steps"][-1] == 900
    with pytest.raises(httpx.HTTPStatusError):
        await asyncio.to_thread(observatory.get, "/api/series", ids="1,x")
    await client.close()


async def test_an_outline_says_after_which_event_of_the_stream_it_is(shared_observatory: ObservatoryProcess) -> None:
    """What the stream tells after its `seq`, and nothing else, is new to it."""
    run, total = "outlined-live", 30
    answers = []
    for step in range(total):
        await post(shared_observatory, run, [{"metric": "m", "step": step, "value": step}])
        answers.append(await asyncio.to_thread(shared_observatory.get, "/api/outline", runs=run))
    (number,) = answers[0]["outline"]["id"]
    for answer in (answers[0], answers[total // 2], answers[-1]):
        (known,) = answer["outline"]["step"]
        client = StreamClient(shared_observatory.http)
        client.last_id = f"{answer['epoch']}:{answer['seq']}"
        client.points[number] = []
        await client.open()
        await client.wait_for(lambda: len(client.points[number]) >= total - 1 - known)  # noqa: B023 - waited for here
        assert [step for step, _, _ in client.points[number]] == list(range(known + 1, total))
        assert answer["outline"]["total_points"] == [known + 1]
        assert not any(name == "snapshot" for name, _ in client.events)
        await client.close()

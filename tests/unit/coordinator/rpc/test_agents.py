"""The agents' stream against a real server in this process, by grpcio's client."""

import asyncio

import grpc
import pytest

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.types.tasks import worker_id_of
from strata.types.workers import MemberState
from tests.unit.coordinator.rpc.conftest import Cluster, heard, host_of, next_frame, next_frames, together, words


async def test_a_broken_stream_makes_a_suspect_until_it_is_back(cluster: Cluster) -> None:
    stream = await cluster.attach("a")
    assert cluster.agent_state("a") is MemberState.READY
    stream.cancel()
    await cluster.eventually("a", MemberState.SUSPECT)
    await cluster.attach("a")
    assert cluster.agent_state("a") is MemberState.READY


async def test_the_end_of_an_old_stream_says_nothing_of_a_newer_one(cluster: Cluster) -> None:
    old = await cluster.attach("a")
    new = await cluster.attach("a")
    old.cancel()
    await heard(new)
    assert cluster.agent_state("a") is MemberState.READY


async def test_every_member_is_told_its_own_place(cluster: Cluster) -> None:
    """Two members behind one agent, one behind another; those of one agent hear it in one message."""
    for worker_id, agent_id in (("w0", "a"), ("w1", "b"), ("w2", "a")):
        await cluster.register(worker_id, agent_id)
    first, second = await cluster.attach("a"), await cluster.attach("b")
    for stream, tie, worker_id in ((first, 1, "w0"), (second, 1, "w1"), (first, 2, "w2")):
        await stream.write(words(tie, hello=worker_id))
        assert (await next_frame(stream)).tie == tie
    for stream, tie, worker_id in ((first, 1, "w0"), (second, 1, "w1"), (first, 2, "w2")):
        await stream.write(words(tie, arrival=worker_id))
    places = {}
    for stream, worker_ids in ((first, {2: "w2", 1: "w0"}), (second, {1: "w1"})):
        while (message := await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "ties":
            pass
        assert [frame.tie for frame in message.ties.frames] == list(worker_ids)  # who came last is told first
        for frame in message.ties.frames:
            result = rk.RankNews.FromString(frame.payload).result
            assert (result.request_id, result.error_code) == (f"r-{worker_ids[frame.tie]}", "")
            assert (result.response.released, result.response.participants) == (True, 3)
            places[worker_ids[frame.tie]] = result.response.arrival_order
    assert sorted(places.values()) == [1, 2, 3]


async def test_ranks_of_one_host_arrive_and_are_released_together(cluster: Cluster) -> None:
    for worker_id, agent_id in (("w0", "a"), ("w1", "a"), ("w2", "b")):
        await cluster.register(worker_id, agent_id)
    first, second = await host_of(cluster, "a", "w0", "w1"), await host_of(cluster, "b", "w2")
    meetings = set()
    for turn, step in enumerate((1, 1, 2, 3, 4)):  # the same one twice: its second round
        await second.write(together((1, "w2"), step=step, request_id=f"x{turn}"))
        await first.write(together((2, "w1"), (1, "w0"), step=step, generation=3, request_id=f"p{turn}"))
        places: list[int] = []
        for stream, ties, request_id in ((first, [2, 1], f"p{turn}"), (second, [1], f"x{turn}")):
            releases = (await next_frame(stream)).releases
            assert (list(releases.ties), releases.request_id) == (ties, request_id)
            places += range(releases.first_order, releases.first_order + len(ties))
            meetings.add(releases.alike.meeting)
            for name in ("meeting", "term", "record"):
                releases.alike.ClearField(name)
            assert releases.alike == pb.BarrierResponse(released=True, barrier_id="b", participants=3, generation=3)
        assert sorted(places) == [1, 2, 3]
    assert len(meetings) == 5, "each has a name of its own, the same for all who were there"


async def test_what_an_agent_said_before_is_heard_without_being_read_and_means_the_same(cluster: Cluster) -> None:
    """The same ranks, barrier after barrier: only the first message of each form is read. Another company of as many
    bytes, and one that is said with something else, must not be taken for it."""
    for worker_id in ("w0", "w1", "w2"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", "w2")
    for step in range(1, 5):
        for ranks in (((1, "w0"), (2, "w1")), ((2, "w1"), (3, "w2")), ((1, "w0"), (3, "w2"))):
            await stream.write(together(*ranks, step=step, expected_participants=2, request_id=f"{ranks}"))
            releases = (await next_frame(stream)).releases
            assert list(releases.ties) == [tie for tie, _ in ranks]
    both = together((1, "w0"), (2, "w1"), step=9, expected_participants=2)
    both.ties.frames.add(tie=3, payload=rk.RankWords(withdrawn=["none"]).SerializeToString())
    both.ties.frames.append(together((1, "w0"), (2, "w1"), step=10, expected_participants=2).ties.frames[0])
    await stream.write(both)
    for _ in range(2):
        assert list((await next_frame(stream)).releases.ties) == [1, 2]


async def test_arrivals_of_an_older_agent_are_heard_rank_by_rank(cluster: Cluster) -> None:
    """Its ranks have each a request of its own, and it knows no release for all of them."""
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1")
    message = together((1, "w0"), (2, "w1"), request_id="")
    message.ties.frames[0].arrivals.request_ids.extend(("p", "q"))
    await stream.write(message)
    results = {frame.tie: rk.RankNews.FromString(frame.payload).result for frame in await next_frames(stream)}
    assert {tie: result.request_id for tie, result in results.items()} == {1: "p", 2: "q"}
    assert sorted(result.response.arrival_order for result in results.values()) == [1, 2]


async def test_of_those_who_arrive_together_each_is_judged_on_its_own(cluster: Cluster) -> None:
    """One says another's name, one's tie nobody knows: the third counts. Without a request none does."""
    for worker_id in ("w0", "w1", "w2", "w3"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", "w2")
    await stream.write(together((2, "w1"), (3, "w2"), request_id=""))
    refused = [rk.RankNews.FromString(frame.payload).result for frame in await next_frames(stream)]
    assert [result.error_code for result in refused] == ["invalid_argument"] * 2
    await stream.write(together((1, "w1"), (9, "w3"), (3, "w2"), expected_participants=1))
    frames: list[ag.TieFrame] = []
    while len(frames) < 3:
        frames += await next_frames(stream)
    told = {frame.tie: frame for frame in frames}
    assert (told[1].ended, told[1].error_code) == (True, "permission_denied")
    assert (told[9].ended, told[9].error_code) == (True, "invalid_argument")  # it never said hello
    released = rk.RankNews.FromString(told[3].payload).result
    assert (released.request_id, released.response.participants) == ("r", 1)


async def test_one_that_comes_again_does_not_keep_its_neighbours(cluster: Cluster) -> None:
    """Two hosts come in one turn; a rank of the second says its first request again."""
    for worker_id, agent_id in (("w0", "a"), ("w1", "a"), ("w2", "b"), ("w3", "b")):
        await cluster.register(worker_id, agent_id)
    first, second = await host_of(cluster, "a", "w0", "w1"), await host_of(cluster, "b", "w2", "w3")
    await second.write(together((1, "w2")))
    await second.write(together((1, "w2"), (2, "w3")))
    await first.write(together((1, "w0"), (2, "w1")))
    places: dict[tuple[str, int], int] = {}
    for host, stream, number in (("a", first, 2), ("b", second, 4)):
        while len(places) < number:
            for frame in await next_frames(stream):
                for place, tie in enumerate(frame.releases.ties, start=frame.releases.first_order):
                    places[host, tie] = place
                if frame.payload:
                    places[host, frame.tie] = rk.RankNews.FromString(frame.payload).result.response.arrival_order
    assert sorted(places.values()) == [1, 2, 3, 4]


async def test_a_tie_that_was_opened_anew_is_not_taken_for_the_one_before(cluster: Cluster) -> None:
    """The same bytes name the same ranks only as long as their ties are."""
    for worker_id in ("w0", "w1", "w2"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1")
    said = together((1, "w0"), (2, "w1"), expected_participants=2)
    await stream.write(said)
    assert list((await next_frame(stream)).releases.ties) == [1, 2]
    await stream.write(ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(tie=2, ended=True)])))
    await stream.write(words(2, hello="w2"))
    assert (await next_frame(stream)).tie == 2
    await stream.write(said)
    while not (ended := [frame for frame in (await asyncio.wait_for(stream.read(), 5)).ties.frames if frame.ended]):
        pass
    assert [(frame.tie, frame.error_code) for frame in ended] == [(2, "permission_denied")]


@pytest.mark.parametrize("broken", ["alike", "company", "request_ids"])
async def test_arrivals_that_cannot_be_read_end_the_agents_stream(cluster: Cluster, broken: str) -> None:
    await cluster.register("w0", "a")
    stream = await host_of(cluster, "a", "w0")
    message = together((1, "w0"))
    arrivals = message.ties.frames[0].arrivals
    if broken == "request_ids":
        arrivals.request_ids.extend(("r", "one too many"))
    else:
        setattr(arrivals, broken, b"\xff")
    await stream.write(message)
    with pytest.raises(grpc.aio.AioRpcError, match="arrivals"):
        await next_frame(stream)


async def test_a_loss_breaks_it_for_each_of_those_who_came_together(cluster: Cluster) -> None:
    for worker_id, agent_id in (("w0", "a"), ("w1", "a"), ("w2", "b")):
        await cluster.register(worker_id, agent_id)
    stream = await host_of(cluster, "a", "w0", "w1")
    await stream.write(together((1, "w0"), (2, "w1")))
    await stream.write(words(1, hello="w0", arrival="w0"))  # again, by another request, while the first one waits
    await heard(stream)
    await cluster.workers.DeregisterWorker(pb.WorkerInfo(worker_id="w2", incarnation="i"))
    broken: set[tuple[int, str]] = set()
    while len(broken) < 3:
        message = await asyncio.wait_for(stream.read(), 5)
        for frame in message.ties.frames:
            result = rk.RankNews.FromString(frame.payload).result
            if result.request_id:
                assert (result.error_code, list(result.missing)) == ("barrier_broken", ["w2"])
                broken.add((frame.tie, result.request_id))
    assert broken == {(1, "r"), (2, "r"), (1, "r-w0")}


async def test_an_agent_speaks_only_for_ranks_of_its_own_host(cluster: Cluster) -> None:
    await cluster.register("w0", "a")
    stream = await cluster.attach("b")
    for tie, hello, code in (
        (1, "w0", "permission_denied"),
        (2, "ghost", "unknown_worker"),
        (3, "", "invalid_argument"),
    ):
        await stream.write(words(tie, hello=hello, arrival="w0"))
        frame = await next_frame(stream)
        assert (frame.tie, frame.ended, frame.error_code) == (tie, True, code)


async def test_for_a_rank_that_it_started_an_agent_must_have_the_secret_of_this_attempt(cluster: Cluster) -> None:
    incarnation = cluster.start_rank("train", attempt=2, agent_id="a")
    name = worker_id_of("train", 0)
    stream = await cluster.attach("a")
    secrets = {
        "": "permission_denied",
        "train.2.forged": "permission_denied",
        cluster.proofs.mint_secret("other", 2): "permission_denied",
        cluster.proofs.mint_secret("train", 1): "fenced",
    }
    for tie, (secret, code) in enumerate(secrets.items(), start=1):
        await stream.write(words(tie, hello=name, proof=secret, incarnation=incarnation, arrival=name))
        frame = await next_frame(stream)
        assert (frame.tie, frame.ended, frame.error_code) == (tie, True, code)
    secret = cluster.proofs.mint_secret("train", 2)
    await stream.write(words(9, hello=name, proof=secret, incarnation=incarnation))
    welcome = await next_frame(stream)
    assert (welcome.tie, welcome.ended) == (9, False)


async def test_a_stream_that_breaks_takes_its_arrivals_back(cluster: Cluster) -> None:
    await cluster.register("w0", "a")
    await cluster.register("w1", "b")
    first, second = await cluster.attach("a"), await cluster.attach("b")
    await first.write(words(1, hello="w0", arrival="w0"))
    await next_frame(first)
    first.cancel()
    await cluster.eventually("a", MemberState.SUSPECT)
    await second.write(words(1, hello="w1", arrival="w1"))
    await next_frame(second)
    again = await cluster.attach("a")
    await again.write(words(7, hello="w0", arrival="w0"))
    for stream, place in ((again, 2), (second, 1)):
        if stream is again:
            await next_frame(stream)  # the welcome
        news = rk.RankNews.FromString((await next_frame(stream)).payload)
        assert news.result.response.arrival_order == place


async def test_what_a_rank_uses_is_its_agent_s_to_say(cluster: Cluster) -> None:
    """A rank that measured itself, without GPUs, in turn with its agent made the figures on the page flicker."""
    await cluster.register("w0", "a")
    stream = await cluster.attach("a")
    gpu = pb.GpuUsage(gpu_id=0, utilization_percent=97.0)
    measured = pb.HeartbeatRequest(worker_id="w0", resources=pb.ResourceUsage(cpu_percent=50, gpu_usage=[gpu]))
    own = pb.HeartbeatRequest(worker_id="w0", resources=pb.ResourceUsage(cpu_percent=3))
    own.status.current_step = 7
    seen = []
    for _ in range(2):
        await cluster.workers.Heartbeat(own)
        seen.append(cluster.report("w0"))
        await stream.write(ag.AgentMessage(beat=ag.AgentBeat(sequence=1, workers=[measured])))
        while (await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "beat":
            pass
        seen.append(cluster.report("w0"))
    assert [item.status.current_step for item in seen] == [7] * 4
    assert not seen[0].HasField("resources")
    assert [item.resources for item in seen[1:]] == [measured.resources] * 3


async def test_a_rank_without_an_agent_says_itself_what_it_uses(cluster: Cluster) -> None:
    await cluster.register("w0", "")
    own = pb.HeartbeatRequest(worker_id="w0", resources=pb.ResourceUsage(cpu_percent=3))
    await cluster.workers.Heartbeat(own)
    assert cluster.report("w0").resources == own.resources

"""What is kept of the stream: bounded, whatever its clients ask for."""

from strata.observatory.stream.ring import Event, Filter, Frames, Ring, RunPart


def test_frames_of_many_filters_are_not_kept() -> None:
    """150 clients, each with runs of its own choice, once cost a copy per client and event."""
    frames = Frames(max_bytes=1 << 20)
    for seq in range(200):
        event = Event(seq, "metrics", "delta", f"e:{seq}", by_run={"a": RunPart(b"", lambda: b"1" * 5_000, 5_000)})
        for client in range(20):
            wanted = Filter(runs=frozenset({"a", f"own-{client}"}))
            assert b"1" * 5_000 in frames.of(event, wanted)
    assert frames.num_bytes <= 1 << 20


def test_clients_with_one_filter_share_a_frame() -> None:
    frames = Frames()
    event = Event(1, "state", "state", "e:1", body=b"{}")
    assert frames.of(event, Filter()) is frames.of(event, Filter(runs=frozenset({"a"})))


def test_a_sparse_client_gets_the_thin_body_where_there_is_one() -> None:
    frames = Frames()
    event = Event(1, "metrics", "runs_meta", "e:1", body=b"[1,2,3]", thin=b"[3]")
    assert b"data: [3]\n" in frames.of(event, Filter(sparse=True))
    assert b"data: [1,2,3]\n" in frames.of(event, Filter())
    assert (event.size(sparse=True), event.size()) == (3, 7)


def test_what_only_other_clients_want_is_made_when_one_reads_and_weighs_nothing_in_the_ring() -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"[" + b"1" * 999 + b"]"

    ring, frames = Ring(max_bytes=3_000), Frames()
    for _ in range(100):
        event = ring.append(
            lambda seq: Event(seq, "metrics", "runs_meta", f"e:{seq}", thin=b"[]", make=make, num_bytes=1_000)
        )
    assert b"data: []\n" in frames.of(event, Filter(sparse=True))
    assert len(ring.since(0) or []) == 100
    assert made == []
    assert frames.of(event, Filter()) is frames.of(event, Filter(runs=frozenset({"a"})))
    assert (len(made), event.size(), event.size(sparse=True)) == (1, 1_000, 2)

"""What is kept of the stream: bounded, whatever its clients ask for."""

from strata.observatory.stream.ring import Event, Filter, Frames, RunPart


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

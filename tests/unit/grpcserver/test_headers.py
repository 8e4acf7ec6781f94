"""Headers are remembered by their bytes: that must never differ from decoding each block anew."""

import pytest
from hpack import Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.grpcserver.frames import ConnectionFault
from strata.grpcserver.headers import HeaderReader

BASE = [(":method", "POST"), (":scheme", "http"), (":path", "/t.T/Echo"), ("content-type", "application/grpc")]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "x-long-name"]), st.sampled_from(["1", "22", "v" * 150, "w" * 300])),
        max_size=40,
    ),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 100, 600, 4096])), max_size=3),
)
def test_a_remembered_block_means_what_it_meant(extras: list[tuple[str, str]], sizes: list[tuple[int, int]]) -> None:
    """Whatever the client's table holds, drops and resizes to."""
    encoder, reader = Encoder(), HeaderReader()
    encoder.header_table_size = 600
    for number, extra in enumerate(extras):
        for at, size in sizes:
            if at == number and size != encoder.header_table_size:  # hpack's encoder forgets a change that is repeated
                encoder.header_table_size = size
        block = encoder.encode([*BASE, extra])
        head = reader.read(block)
        assert head.metadata == (extra,)
        assert (head.path, head.refusal) == ("/t.T/Echo", None)


def test_the_same_bytes_are_decoded_once() -> None:
    encoder, reader = Encoder(), HeaderReader()
    blocks = [encoder.encode(BASE) for _ in range(3)]
    heads = [reader.read(block) for block in blocks]
    assert blocks[1] == blocks[2]
    assert heads[1] is heads[2]


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([(":method", "GET"), (":path", "/"), ("content-type", "application/grpc")], 405),
        ([(":method", "POST"), (":path", "/"), ("content-type", "text/html")], 415),
        ([(":method", "POST"), (":path", "/")], 415),
    ],
)
def test_what_is_no_grpc_call_has_an_http_status(headers: list[tuple[str, str]], refusal: int) -> None:
    assert HeaderReader().read(Encoder().encode(headers)).refusal == refusal


@pytest.mark.parametrize(
    ("text", "seconds"), [("1H", 3600.0), ("2M", 120.0), ("3S", 3.0), ("4m", 0.004), ("5u", 5e-6), ("6n", 6e-9)]
)
def test_a_timeout_in_every_unit(text: str, seconds: float) -> None:
    head = HeaderReader().read(Encoder().encode([*BASE, ("grpc-timeout", text)]))
    assert head.timeout_s == pytest.approx(seconds)


@pytest.mark.parametrize("extra", [("grpc-timeout", "soon"), ("grpc-timeout", "123456789S"), ("x-bin", "a")])
def test_values_that_cannot_be_read_end_the_connection(extra: tuple[str, str]) -> None:
    with pytest.raises(ConnectionFault):
        HeaderReader().read(Encoder().encode([*BASE, extra]))

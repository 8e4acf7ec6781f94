"""Frames between the observatory and its store process, and how the child learns that the parent is gone."""

import socket

import pytest

from strata.observatory.store.frames import pack, recv_frame


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def test_a_frame_arrives_whole(pair: tuple[socket.socket, socket.socket]) -> None:
    parent, child = pair
    with parent, child:
        for piece in pack({"op": "query"}, b"payload"):
            parent.sendall(piece)
        assert recv_frame(child) == ({"op": "query"}, bytearray(b"payload"))


def test_a_parent_that_closed_is_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    parent, child = pair
    with child:
        parent.close()
        assert recv_frame(child) is None


def test_a_parent_that_died_with_answers_unread_is_the_end_too(pair: tuple[socket.socket, socket.socket]) -> None:
    """The kernel then reports a reset, not an end; the store must not live on as an orphan that owns the folder."""
    parent, child = pair
    with child:
        child.sendall(b"an answer that nobody reads")
        parent.close()
        assert recv_frame(child) is None

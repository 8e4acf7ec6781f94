"""The ranks of a task as one group: sums over all of them, in rank order, so that every run gives the same bits.

Only raw bytes cross the wire, never pickles. A peer that dies is noticed at once by everybody who waits for it.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strata.errors import InvalidArgument, PeerLost
from strata.worker.collective.meeting import Address, dial, gather

__all__ = ["Gang"]


class Gang:
    """`sum` and `gather` are collective: every rank calls them in the same order."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        address: Address,
        secret: bytes,
        given_up: Callable[[], bool] = lambda: False,
        note_wait: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Meets the others; raises PeerLost when `given_up` says that nobody will come any more. `note_wait` hears how
        long this rank has waited for others."""
        self.rank = rank
        self.world_size = world_size
        self._note_wait = note_wait
        self._peers: dict[int, Connection[Any, Any]] = {}
        if world_size > 1:
            if rank:
                self._peers = {0: dial(address, rank, secret, given_up=given_up)}
            else:
                self._peers = gather(address, world_size, secret, given_up=given_up)

    def sum(self, values: ArrayLike) -> NDArray[np.float64]:
        """The element-wise sum over all ranks, added in rank order, as float64. All give arrays of one shape."""
        total = np.array(values, dtype=np.float64)
        if self.world_size == 1:
            return total
        if self.rank:
            self._send(0, total.tobytes())
            return self._receive_like(total, 0)
        for rank in range(1, self.world_size):
            total += self._receive_like(total, rank)
        return self._tell_all(total)

    def _receive_like(self, mine: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
        data = bytearray(self._receive(rank))
        if len(data) != mine.nbytes:
            raise InvalidArgument(
                f"rank {rank} gave {len(data) // 8} numbers to a sum to which rank {self.rank} gave {mine.size}",
                hint="Every rank gives an array of the same shape, in the same order of calls.",
            )
        return np.frombuffer(data, dtype=np.float64).reshape(mine.shape)

    def sum_shares(self, shares: Sequence[NDArray[np.float64]], owners: Sequence[int]) -> NDArray[np.float64]:
        """The element-wise sum over all shares, added in their order, whoever has which: the same bits at every size.
        `owners` are the ranks of all shares, `shares` this rank's own, in order."""
        if self.rank:
            for share in shares:
                self._send(0, share.tobytes())
            return np.frombuffer(self._receive(0), dtype=np.float64)
        total, mine = np.zeros_like(shares[0]), iter(shares)
        for owner in owners:
            total += next(mine) if owner == 0 else np.frombuffer(self._receive(owner), dtype=np.float64)
        return self._tell_all(total)

    def _tell_all(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """All have given their part: whoever lives is done with this sum, whoever died meanwhile."""
        data = total.tobytes()
        for rank in range(1, self.world_size):
            with contextlib.suppress(PeerLost):
                self._send(rank, data)
        return total

    def gather(self, value: int) -> list[int]:
        """Every rank's number, by rank."""
        mine = np.zeros(self.world_size, dtype=np.float64)
        mine[self.rank] = value
        return [int(item) for item in self.sum(mine)]

    def share(self, source: int, takers: Sequence[int], pieces: Sequence[memoryview]) -> memoryview | None:
        """Brings the source's pieces to the takers, which get them as one; None for the others. By way of rank 0."""
        if not takers:
            return None
        if self.rank:
            if self.rank == source:
                self._send_much(0, pieces)
            return self._receive_much(0) if self.rank in takers else None
        arrived = None
        if source:
            arrived = self._receive_much(source)
            pieces = [arrived]
        for rank in takers:
            if rank:
                self._send_much(rank, pieces)
        return arrived if 0 in takers else None

    def _send_much(self, rank: int, pieces: Sequence[memoryview]) -> None:
        """From the pieces' own memory, whatever their size."""
        self._send(rank, sum(len(piece) for piece in pieces).to_bytes(8, "little"))
        for piece in pieces:
            left = piece
            while left:
                written = self._guarded(rank, partial(_write, left))
                left = left[written:]

    def _receive_much(self, rank: int) -> memoryview:
        """Into memory that is taken once."""
        whole = np.empty(int.from_bytes(self._receive(rank), "little"), dtype=np.uint8).data
        left = whole
        while left:
            read = self._guarded(rank, partial(_read_into, left))
            if not read:
                raise PeerLost(f"rank {rank} is gone in the middle of its state")
            left = left[read:]
        return whole

    def abort(self) -> None:
        """Ends every wait for a peer, from any thread: whoever waits hears that the peer is gone."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError), socket.fromfd(peer.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line:
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def _send(self, rank: int, data: bytes | memoryview) -> None:
        self._guarded(rank, lambda peer: peer.send_bytes(data))

    def _receive(self, rank: int) -> bytes:
        received: bytes = self._guarded(rank, lambda peer: peer.recv_bytes())
        return received

    def _guarded(self, rank: int, action: "Callable[[Connection[Any, Any]], Any]") -> Any:
        began = time.monotonic()
        try:
            return action(self._peers[rank])
        except (EOFError, OSError) as error:
            raise PeerLost(f"rank {rank} is gone ({type(error).__name__})") from None
        finally:
            self._note_wait(time.monotonic() - began)


def _write(data: memoryview, peer: "Connection[Any, Any]") -> int:
    return os.write(peer.fileno(), data)


def _read_into(target: memoryview, peer: "Connection[Any, Any]") -> int:
    return os.readv(peer.fileno(), [target])

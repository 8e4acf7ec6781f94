"""Follows the coordinator: one WatchState stream, taken up again where it broke, at the next coordinator where there
are several. It writes PublishedCluster alone.
"""

import asyncio
import json
import logging
from typing import Any

import grpc
import grpc.aio

from strata.client.channel import open_channel, token_metadata
from strata.client.leaders import Leaders
from strata.errors import CoordinatorUnavailable
from strata.observatory.background.part import Part
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.vitals import to_figures, to_vitals
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.status import from_rpc_error
from strata.trust.access import Access

__all__ = ["CoordinatorFeed"]

_log = logging.getLogger(__name__)
_BACKOFF_S = (0.2, 0.5, 1.0, 2.0)
_BACKOFF_OF_SEVERAL_S = (0.1, 0.2)
_AT_ONCE = 500  # vitals that are read before others may have the loop
_MAX_MESSAGE = 256 << 20
# Vitals come twice a second; this long without any, and the connection is dead even if TCP has not noticed.
_SILENCE_S = 10.0
_SILENCE_OF_SEVERAL_S = 2.5  # where another coordinator may lead by then


class CoordinatorFeed(Part):
    """One task; while the coordinator is away it tries again about every two seconds, for ever."""

    def __init__(self, leaders: Leaders, access: Access, published: PublishedCluster) -> None:
        self._leaders = leaders
        self._address = leaders.current
        self._silence_s = _SILENCE_OF_SEVERAL_S if leaders.several else _SILENCE_S
        self._access = access
        self._metadata = token_metadata(access.token)
        self._published = published

    async def _run(self) -> None:
        failures = 0
        pauses = _BACKOFF_OF_SEVERAL_S if self._leaders.several else _BACKOFF_S
        while True:
            self._address = self._leaders.current
            try:
                options = [("grpc.max_receive_message_length", _MAX_MESSAGE)]
                async with open_channel(self._address, self._access, options) as channel:
                    failures = 0 if await self._follow(channel) else failures + 1
            except grpc.RpcError as error:
                failures = 1 if self._published.connected else failures + 1
                self._lost(from_rpc_error(error, address=self._address).message)
            except TimeoutError:
                self._lost(f"the coordinator at {self._address} went silent")
            self._leaders.leave(self._address)
            await asyncio.sleep(pauses[min(failures, len(pauses) - 1)])

    async def _follow(self, channel: grpc.aio.Channel) -> bool:
        """One life of the stream; whether anything came."""
        request = ct.WatchRequest(
            from_seq=self._published.followed.seq, cluster_id=self._published.followed.records.cluster_id
        )
        call: Any = ControlStub(channel).WatchState(request, metadata=self._metadata)
        came = False
        while True:
            async with asyncio.timeout(self._silence_s):
                update = await call.read()
            if update is grpc.aio.EOF:
                self._lost(CoordinatorUnavailable(f"the coordinator at {self._address} ended the stream").message)
                return came
            came = True
            await self._take(update)

    async def _take(self, update: ct.StateUpdate) -> None:
        match update.WhichOneof("update"):
            case "snapshot":
                with self._published.aside.guard("cluster events", f"the state as of event {update.snapshot.seq}"):
                    self._published.load(update.snapshot.seq, json.loads(update.snapshot.records_json))
            case "events":
                for event in update.events.events:
                    self._published.apply(event.seq, event.kind, event.body_json)
            case "vitals":
                vitals = update.vitals
                workers = {}
                for place, worker in enumerate(vitals.workers, 1):
                    workers[worker.worker_id] = to_vitals(worker)
                    if place % _AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._published.set_vitals(
                    workers, list(vitals.barriers), to_figures(vitals.figures), list(vitals.spares)
                )

    def _lost(self, reason: str) -> None:
        if self._published.connected:
            _log.warning("the coordinator is away: %s", reason)
        self._published.set_disconnected(reason)

"""Tells the cluster what this process reads: its lanes to the coordinator, a small look at its samples to the page.

Implements strata.data's ReadWatcher. Training never waits for it longer than a moment, and never fails by it.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial

from strata.data.preview import Preview
from strata.errors import StrataError
from strata.protocol.generated import telemetry_pb2 as tm
from strata.sharding.lanes import LaneLayout
from strata.worker.reporter import Reporter
from strata.worker.session import Session

__all__ = ["Watcher"]

_log = logging.getLogger(__name__)

_PREVIEW_S = 2.0
_PREVIEW_ROWS = 4
_PATIENCE_S = 2.0


class Watcher:
    """One per process. Without a session there is nobody to tell."""

    def __init__(self, session: Session, reporter: Reporter) -> None:
        self._session = session
        self._reporter = reporter
        self._pid = os.getpid()
        self._looked_at: dict[str, float] = {}
        self._said: dict[tuple[str, str, int], tuple[LaneLayout, tuple[int, ...]]] = {}
        session.on_rejoin(self._say_again)

    def begins(self, dataset_id: str, layout: LaneLayout, lanes: tuple[int, ...]) -> None:
        if os.getpid() != self._pid:
            return  # a forked reader: its parent has said it, and a forked gRPC channel must not be touched
        self._said[dataset_id, layout.spec.manifest, layout.spec.num_lanes] = (layout, lanes)
        self._start(dataset_id, layout, lanes).join(_PATIENCE_S)

    def handed_out(self, dataset_id: str, num_read: int, look: Callable[[int], Preview]) -> None:
        status, now = self._session.status, time.monotonic()
        if os.getpid() != self._pid:
            return
        if status.dataset_id == dataset_id:
            status.samples_done = num_read
        if now - self._looked_at.get(dataset_id, -_PREVIEW_S) < _PREVIEW_S:
            return
        self._looked_at[dataset_id] = now
        preview = look(_PREVIEW_ROWS)
        sample = tm.Sample(
            dataset_id=dataset_id,
            worker_id=self._session.member.worker_id,
            epoch=preview.epoch,
            position=preview.position,
            rows_json=json.dumps(preview.to_dict(), default=str),
        )
        self._reporter.add_sample(sample)

    def _start(self, dataset_id: str, layout: LaneLayout, lanes: tuple[int, ...]) -> threading.Thread:
        """On a thread of its own: while the coordinator is away, it is asked again and training goes on."""
        said = partial(self._say, dataset_id, layout, lanes)
        thread = threading.Thread(target=said, name="strata-announce", daemon=True)
        thread.start()
        return thread

    def _say(self, dataset_id: str, layout: LaneLayout, lanes: tuple[int, ...]) -> None:
        try:
            self._session.workers.announce(self._session.member, dataset_id, layout, lanes)
        except StrataError as error:
            _log.warning("who reads dataset %s is not shown: %s", dataset_id, error)

    def _say_again(self) -> None:
        """The coordinator had given this process up, and forgot with it what it read."""
        for (dataset_id, _, _), (layout, lanes) in self._said.items():
            self._start(dataset_id, layout, lanes)

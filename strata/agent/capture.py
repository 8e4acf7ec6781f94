"""Passes on what the ranks print and what the host uses, as batches for the observatory."""

import time
from collections import deque
from collections.abc import Iterator

from strata.agent.causes import Cause
from strata.agent.host import HostSample
from strata.agent.logs import Tail
from strata.agent.rank_files import RankKey, RankRecord
from strata.agent.ranks import Ranks
from strata.client.batches import new_batch
from strata.client.telemetry import Outbox
from strata.protocol.generated import telemetry_pb2 as tm
from strata.types.metrics import NO_DEVICE

__all__ = ["Capture"]

_STREAMS = ("stdout", "stderr")
_MAX_BATCH_LINES = 2_000
_MAX_LAST_READS = 256


class Capture:
    """Follows the output of every rank. Called from the agent's loop; never blocks on the observatory."""

    def __init__(self, ranks: Ranks, outbox: Outbox, hostname: str) -> None:
        self._ranks = ranks
        self._outbox = outbox
        self._hostname = hostname
        self._tails: dict[RankKey, dict[str, Tail]] = {}
        self._passed: deque[tuple[int, RankKey, dict[str, int]]] = deque()  # batch, and how far it takes its rank

    def follow(self) -> None:
        """One look at every file; new lines go out at once."""
        for record in self._ranks.running():
            self._pass_on(record, final=False)

    def finish(self, record: RankRecord) -> Cause:
        """A rank has ended: what it printed last is passed on, and what it says of its end is returned."""
        tails = self._of(record)
        for _ in range(_MAX_LAST_READS):  # a child of its own that lives on may write for ever
            self._pass_on(record, final=True)
            if not any(tail.behind for tail in tails.values()):
                break
        for tail in tails.values():
            tail.shed(tail.offset)
        self._tails.pop(record.key, None)
        return tails["stderr"].causes.of_exit(record.exit_code)

    def note_offsets(self) -> list[RankRecord]:
        """Takes note in the records how far their output is safe: delivered, or on disk. A new agent goes on there.
        Returns the records that changed."""
        settled, safe = self._outbox.settled, dict[RankKey, dict[str, int]]()
        while self._passed and self._passed[0][0] <= settled:
            _, key, offsets = self._passed.popleft()
            safe[key] = offsets
        changed = [record for record in self._ranks.running() if safe.get(record.key, record.offsets) != record.offsets]
        for record in changed:
            record.offsets = safe[record.key]
        return changed

    def shed(self, record: RankRecord) -> bool:
        """Gives the disk back what is safe elsewhere; True when the record's offsets have changed by it."""
        anew = [stream for stream, tail in self._of(record).items() if tail.shed(record.offsets.get(stream, 0))]
        record.offsets = record.offsets | dict.fromkeys(anew, 0)
        return bool(anew)

    def _of(self, record: RankRecord) -> dict[str, Tail]:
        if record.key not in self._tails:
            self._tails[record.key] = {
                stream: Tail(self._ranks.log_file(record, stream), record.offsets.get(stream, 0)) for stream in _STREAMS
            }
        return self._tails[record.key]

    def _pass_on(self, record: RankRecord, *, final: bool) -> None:
        tails = self._of(record)
        lines = [
            self._line(record, line.level, line.text, source="worker", stream=stream, sequence=line.offset)
            for stream, tail in tails.items()
            for line in tail.read(final=final)
        ]
        for start in range(0, len(lines), _MAX_BATCH_LINES):
            batch = new_batch()
            batch.logs.extend(lines[start : start + _MAX_BATCH_LINES])
            number = self._outbox.put(batch)
            if start + _MAX_BATCH_LINES >= len(lines):
                offsets = {stream: tail.offset for stream, tail in tails.items()}
                self._passed.append((number, record.key, offsets))

    def say(self, level: str, message: str, record: RankRecord) -> None:
        """A line of the agent's own, about a rank."""
        batch = new_batch()
        batch.logs.append(self._line(record, level, message, source="agent", stream="log"))
        self._outbox.put(batch)

    def _line(
        self, record: RankRecord, level: str, message: str, *, source: str, stream: str, sequence: int = 0
    ) -> tm.LogLine:
        return tm.LogLine(
            event_time_ms=time.time_ns() // 1_000_000,
            level=level,
            message=message,
            source=source,
            task_id=record.task_id,
            worker_id=record.worker_id,
            host=self._hostname,
            rank=record.rank,
            attempt=record.attempt,
            stream=stream,
            sequence=sequence,
        )

    def metrics(self, sample: HostSample) -> None:
        """The host's figures go to the run of every task that has a rank here; their step is the second."""
        batch = new_batch()
        now_ms = time.time_ns() // 1_000_000
        for record in self._first_ranks():
            for name, value in sample.metrics.items():
                index = len(batch.series)
                batch.series.add(
                    index=index,
                    run_id=record.task_id,
                    metric=name,
                    host=self._hostname,
                    rank=record.rank,
                    device=NO_DEVICE,
                )
                batch.points.series.append(index)
                batch.points.step.append(max(0, int(now_ms / 1e3 - record.started_at)))
                batch.points.event_time_ms.append(now_ms)
                batch.points.value.append(value)
        if batch.series:
            self._outbox.put(batch)

    def _first_ranks(self) -> Iterator[RankRecord]:
        seen = set()
        for record in sorted(self._ranks.running(), key=lambda item: item.rank):
            if record.task_id not in seen:
                seen.add(record.task_id)
                yield record

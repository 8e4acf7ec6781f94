"""What an agent must not forget: which ranks it was asked to start, and how they are found again. One small file per
rank, written before the start and after it, so that no rank is ever started twice.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from strata.types.tasks import incarnation_of

__all__ = ["RankFiles", "RankKey", "RankRecord"]

_log = logging.getLogger(__name__)

RankKey = tuple[str, int, int, int]  # task, attempt, rank, life


@dataclass(slots=True, kw_only=True)
class RankRecord:
    """One rank's process. An empty handle means that the start was intended; `ended` ranks are kept until the
    coordinator no longer asks for them."""

    task_id: str
    attempt: int
    rank: int
    worker_id: str
    incarnation: str
    life: int = 0
    handle: str = ""
    started_at: float = 0.0
    grace_s: float = 30.0
    ended: bool = False
    exit_code: int | None = None
    stopped: bool = False
    unstarted: bool = False
    hindered: bool = False
    out_of_memory: bool = False
    left: bool = False  # its script was asked to go, and went
    finished: bool = False  # its script had said that it has finished
    hung: bool = False
    look: str = ""
    where: str = ""
    waiting: bool = False
    suspended: bool = False
    exception: str = ""
    message: str = ""
    gpus: list[int] = field(default_factory=list)  # the cards of this host that it alone holds
    offsets: dict[str, int] = field(default_factory=dict)  # how far stdout and stderr were passed on

    @property
    def key(self) -> RankKey:
        return self.task_id, self.attempt, self.rank, self.life


class RankFiles:
    """The records of one agent, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[RankRecord]:
        records = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                records.append(RankRecord(**json.loads(path.read_text())))
            except (ValueError, TypeError) as error:  # cut off by a full disk: the coordinator will ask again
                _log.warning("%s cannot be read and is ignored: %s", path, error)
        return records

    def save(self, record: RankRecord, *, sync: bool = True) -> None:
        """Durable on return with `sync`; without it, only safe from a crash of this process."""
        target = self._path(record.key)
        staged = target.with_suffix(".part")
        with staged.open("w") as file:
            json.dump(asdict(record), file)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        staged.replace(target)

    def note(self, record: RankRecord, *, sync: bool = True) -> None:
        """As `save`, where going on matters more: on a full disk the note is missing, and a next agent finds the rank
        by its tag, or its end by looking."""
        try:
            self.save(record, sync=sync)
        except OSError as error:
            _log.warning("%s cannot be noted: %s", record.worker_id, error)

    def remove(self, key: RankKey) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: RankKey) -> Path:
        task_id, attempt, rank, life = key
        return self._folder / f"{incarnation_of(task_id, attempt, rank, life)}.json"

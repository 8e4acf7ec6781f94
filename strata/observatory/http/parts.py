"""What the HTTP layer is given: live parts of the observatory, made and owned by its composition root."""

from dataclasses import dataclass

from strata.clock import Clock
from strata.observatory.alerts import AlertBook
from strata.observatory.broadcaster import Broadcaster
from strata.observatory.courses import CourseBook
from strata.observatory.curves import CurveReader
from strata.observatory.datafiles import FileReaders
from strata.observatory.edits import RunEditor
from strata.observatory.exposition import Exposition
from strata.observatory.http.auth import Guard
from strata.observatory.ingest.commands import CoordinatorCommands
from strata.observatory.intake import Intake
from strata.observatory.keeper import CheckpointKeeper
from strata.observatory.live import LiveView
from strata.observatory.logbook import LogBook
from strata.observatory.pins import PinBook
from strata.observatory.readmodel.board import ClusterBoard
from strata.observatory.samples import SampleBook
from strata.observatory.store.base import Store

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Read by the routers; nothing here is created per request."""

    guard: Guard
    clock: Clock
    intake: Intake
    live: LiveView
    broadcaster: Broadcaster
    curves: CurveReader
    logs: LogBook
    board: ClusterBoard
    commands: CoordinatorCommands
    alerts: AlertBook
    samples: SampleBook
    files: FileReaders
    keeper: CheckpointKeeper
    edits: RunEditor
    pins: PinBook
    courses: CourseBook
    exposition: Exposition
    store: Store

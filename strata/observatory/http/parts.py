"""What the HTTP layer is given: live parts of the observatory, made and owned by its composition root."""

from dataclasses import dataclass

from strata.clock import Clock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.deliveries import Deliveries
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rule_watcher import RuleWatcher
from strata.observatory.cluster.checkpoint_archive import CheckpointArchive
from strata.observatory.cluster.commands import CoordinatorCommands
from strata.observatory.cluster.pins import PinBook
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.timelines import Timelines
from strata.observatory.cluster.verdicts import Verdicts
from strata.observatory.history.dashboards import DashboardBook
from strata.observatory.history.edits import RunEditor
from strata.observatory.history.heats import HeatBook
from strata.observatory.history.logbook import LogBook
from strata.observatory.history.questions import Questions
from strata.observatory.history.series_reader import CurveReader
from strata.observatory.http.auth import Guard
from strata.observatory.http.exposition import Exposition
from strata.observatory.ingest.intake import Intake
from strata.observatory.live.view import LiveView
from strata.observatory.media.reader import MediaReader
from strata.observatory.previews.files import FileReaders
from strata.observatory.previews.samples import SampleBook
from strata.observatory.store.base import Store
from strata.observatory.stream.broadcaster import Broadcaster

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
    heats: HeatBook
    questions: Questions
    logs: LogBook
    published: PublishedCluster
    commands: CoordinatorCommands
    alerts: AlertBook
    rules: RuleBook
    rule_watcher: RuleWatcher
    deliveries: Deliveries
    samples: SampleBook
    files: FileReaders
    media: MediaReader
    archive: CheckpointArchive
    edits: RunEditor
    dashboards: DashboardBook
    pins: PinBook
    timelines: Timelines
    verdicts: Verdicts
    exposition: Exposition
    store: Store

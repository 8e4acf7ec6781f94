"""The agents of one `strata run`: started through a launcher, watched while the task needs them, stopped with it."""

import re
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strata.client.endpoints import Endpoints
from strata.client.tasks import TaskView
from strata.config import Settings, environment, variables
from strata.errors import InvalidArgument, ProcessFailed, Unavailable
from strata.launchers.base import Launcher
from strata.launchers.fleet import FleetSpec, agent_spec, fleet_hosts, open_launcher
from strata.network import is_loopback
from strata.storage.home import checkpoint_home
from strata.trust.access import Access
from strata.types.tasks import TaskStatus

__all__ = ["Fleet", "FleetRequest", "open_fleet"]

_OF_CLOUDS = re.compile(r"(STRATA_)?(AWS|AZURE|GOOGLE)_")
# What agents and their ranks read beside that, and what is the same on every host.
_FOR_AGENTS = ("log", "log_format", "notice_url", "quiet", "scrub_mb_s")
_LOOK_S = 2.0  # between two questions to a scheduler that others use, too
_ATTACH_S = 120.0
_LOOPBACK = (
    "The coordinator listens on loopback, which only this host reaches: for others start it with"
    " `strata up --host <an address of this host>` (docs/deploying.md)."
)
_STOP_GRACE_S = 75.0  # agents give their workers up to a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """What the user asked for. `options` are the launcher's own, as NAME=VALUE, or NAME for one without a value.
    `checkpoints` is the folder where a task has saved that is resumed."""

    launcher: str
    workers: int
    nodes: int | None = None
    options: tuple[str, ...] = ()
    shared_dir: Path | None = None
    checkpoints: str = ""


class Fleet:
    """Agents behind one handle. `tell` is given lines for the user."""

    def __init__(self, launcher: Launcher, spec: FleetSpec, tell: Callable[[str], None]) -> None:
        self._launcher = launcher
        self._fleet = spec
        self._spec = agent_spec(spec)
        self._tell = tell
        self._handle = ""
        self._looked_at = 0.0
        self._waiting_since = 0.0
        self._said = ""
        self._ended = False

    @property
    def checkpoints(self) -> str:
        """Where its tasks save, unless they name a place."""
        return self._spec.env["STRATA_CHECKPOINT_BUCKET"]

    def prepare(self) -> None:
        """Raises what would go wrong, before anything is started anywhere."""
        Path(self._spec.working_dir).mkdir(parents=True, exist_ok=True)
        self._launcher.prepare(self._spec)

    def start(self, endpoints: Endpoints, task_id: str) -> str:
        """`endpoints` are of the cluster that the agents join, for this task alone. Returns what was started, in the
        launcher's words."""
        joined = replace(
            self._fleet,
            coordinator=endpoints.grpc,
            telemetry=endpoints.telemetry,
            token=endpoints.access.token,
            task_id=task_id,
            env={**self._fleet.env, **_trust(endpoints.access)},
        )
        self._fleet, self._spec = joined, agent_spec(joined)
        if self._unreachable:
            self._tell(_LOOPBACK)
        self._tell(f"asking {self._asked}")
        self._handle = self._launcher.start(self._spec)
        self._waiting_since = time.monotonic()
        return f"{self._fleet.launcher} {self._handle}"

    @property
    def _unreachable(self) -> bool:
        return is_loopback(self._fleet.coordinator.rpartition(":")[0])

    @property
    def _asked(self) -> str:
        fleet = self._fleet
        slots = f"{fleet.slots_per_agent} slot{'s' if fleet.slots_per_agent > 1 else ''}"
        many = f"{fleet.num_agents} agents with {slots} each" if fleet.num_agents > 1 else f"an agent with {slots}"
        return f"{fleet.launcher} for {many}"

    def look(self, task: TaskView, attach_s: float = _ATTACH_S) -> None:
        """To be called now and then. Raises ProcessFailed when the agents have ended before the task, or run for
        `attach_s` and the task still has no slots. While a scheduler has no place for them there is no limit. Agents
        end with their task, so their end counts when the task is not over at the next look either."""
        now = time.monotonic()
        if now - self._looked_at < min(_LOOK_S, attach_s):
            return
        self._looked_at = now
        try:
            ended = self._launcher.poll(self._handle)
        except Unavailable as error:  # who starts them does not answer; that says nothing about them
            self._say(str(error))
            return
        if ended is not None:
            if self._ended:
                raise self._failed(f"they have ended ({ended.reason or f'exit code {ended.code}'})")
            self._ended = True
            return
        if task.status not in (TaskStatus.QUEUED, TaskStatus.RECOVERING):
            return
        standing = self._launcher.describe(self._handle)
        self._say(standing.text)
        if standing.pending:
            self._waiting_since = now
        elif task.status is TaskStatus.QUEUED and now - self._waiting_since > attach_s:
            raise self._failed(f"after {attach_s:g} s the task is still {task.reason} ({standing.text})")

    def stop(self) -> None:
        """Returns when no agent is left; says so when that cannot be known."""
        if not self._handle:
            return
        try:
            self._launcher.stop(self._handle, _STOP_GRACE_S)
        except Unavailable as error:
            self._tell(f"the agents may still run: {error}")
        self._handle = ""

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._tell(text)

    def _failed(self, what: str) -> ProcessFailed:
        last = _last_line(self._spec.stdout)
        hint = f"Their log: {self._spec.stdout}*."
        if self._unreachable:
            hint += f" {_LOOPBACK}"
        return ProcessFailed(
            f"asked {self._asked}, but {what}" + (f"; their last words: {last}" if last else ""), hint=hint
        )


def open_fleet(request: FleetRequest, settings: Settings, tell: Callable[[str], None]) -> Fleet | None:
    """A fleet with a slot for every worker, spread evenly over its nodes; None for `local`, whose agent is there. It is
    prepared, nothing is started."""
    if request.launcher == "local":
        if request.nodes or request.options or request.shared_dir:
            raise InvalidArgument(
                "--nodes, --launcher-option and --shared-dir are for agents on other hosts: --launcher"
            )
        return None
    options = _options(request.options)
    python = options.pop("python", "python" if request.launcher == "kubernetes" else sys.executable)
    launcher = open_launcher(request.launcher, options)
    nodes = request.nodes or len(fleet_hosts(request.launcher, options)) or 1
    if nodes > request.workers:
        raise InvalidArgument(f"{nodes} nodes for {request.workers} workers: some would have nothing to do")
    tag = f"run-{secrets.token_hex(3)}"
    spec = FleetSpec(
        launcher=request.launcher,
        coordinator=settings.coordinator_addr,
        folder=(request.shared_dir or settings.data_dir / "fleets") / tag,
        num_agents=nodes,
        slots_per_agent=-(-request.workers // nodes),
        tag=tag,
        python=python,
        env={**_settings(), **(_storage(settings) or _kept(request.checkpoints))},
    )
    fleet = Fleet(launcher, spec, tell)
    fleet.prepare()
    return fleet


def _options(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, _, value = item.partition("=")
        if not name:
            raise InvalidArgument(f"--launcher-option {item!r} is neither NAME=VALUE nor NAME")
        found[name] = value
    return found


def _trust(access: Access) -> dict[str, str]:
    """By whom the agents know the cluster."""
    if access.insecure:
        return {"STRATA_INSECURE": "1"}
    return {"STRATA_CA": access.roots} if access.roots else {}


def _settings() -> dict[str, str]:
    """What was set here of the settings that are for agents, too; all others are of this host or of the cluster."""
    wanted = {name for field in _FOR_AGENTS for name in variables(field)}
    return {name: value for name, value in environment().items() if name in wanted}


def _storage(settings: Settings) -> dict[str, str]:
    """Where checkpoints go, when somebody said so; else the fleet's own folder, which all its agents see. For a bucket
    all that the clouds' libraries read goes along: keys, endpoints, names of files and accounts."""
    home = settings.checkpoint_bucket
    if settings.storage_backend != "s3":
        return {"STRATA_CHECKPOINT_BUCKET": str(Path(home).resolve())} if home else {}
    clouds = {name: value for name, value in environment().items() if _OF_CLOUDS.match(name)}
    return {"STRATA_STORAGE_BACKEND": "s3", "STRATA_CHECKPOINT_BUCKET": checkpoint_home(settings), **clouds}


def _kept(checkpoints: str) -> dict[str, str]:
    """A bucket's keys are not kept: whoever resumes there says where it is, as at the first time."""
    return {"STRATA_CHECKPOINT_BUCKET": checkpoints} if checkpoints and "://" not in checkpoints else {}


def _last_line(log: Path | None) -> str:
    """Of the newest of the agents' logs, where this host sees it."""
    if log is None:
        return ""
    found = sorted(log.parent.glob(f"{log.name}*"), key=lambda path: path.stat().st_mtime)
    lines = [line.strip() for path in found for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""

"""wandb's Run over Strata's: the same methods and properties, thin; what is taken otherwise is in surface.py."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from strata.wandb.artifact import Artifact, as_artifact
from strata.wandb.files import RunFiles
from strata.wandb.metric import StepRules
from strata.wandb.notes import note
from strata.wandb.surface import refusal
from strata.wandb.wandb_config import Config
from strata.wandb.wandb_summary import Summary
from strata.wandb.watched import Watch, What
from strata.worker import run as runs
from strata.worker.media.base import media_of
from strata.worker.points import Text, Unfit, flat, shown, value_json, whole_step

__all__ = ["Run"]

_LEVELS = {"INFO": "info", "WARN": "warn", "ERROR": "error"}


class Run(AbstractContextManager["Run"]):
    """One run. `log` never raises, as Strata's does; steps begin at 0 and go on by one with each committed call."""

    sweep_id = None
    entity = ""
    disabled = False

    def __init__(self, run: runs.Run, resumed: bool) -> None:
        self._run = run
        self.config = Config(run)
        self.summary = Summary(run.summary)
        self.resumed = resumed
        self.starting_step = run.step + 1 if resumed else 0
        self.step = self.starting_step
        self.start_time = time.time()
        self._rules = StepRules()
        self._files = RunFiles(run.place.data_dir, run.id)
        self._watches: dict[int, Watch] = {}

    # --- what it is

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def project(self) -> str:
        return self._run.project

    @property
    def path(self) -> str:
        return f"{self.project}/{self.id}"

    @property
    def dir(self) -> str:
        """The run's folder of files; what lies there is kept."""
        self._files.folder.mkdir(parents=True, exist_ok=True)
        return str(self._files.folder)

    @property
    def group(self) -> str:
        return self._run.about.group

    @property
    def job_type(self) -> str:
        return self._run.about.job_type

    @property
    def url(self) -> str | None:
        """Its page, None while no observatory is known."""
        observatory = self._run.reporter.observatory
        return f"{observatory.http}/ui/runs/{self.id}" if observatory is not None and observatory.http else None

    @property
    def is_over(self) -> bool:
        return self._run.is_over

    @property
    def offline(self) -> bool:
        return self._run.reporter.observatory is None

    @property
    def name(self) -> str:
        return self._run.name

    @name.setter
    def name(self, name: str) -> None:
        self._run.update(name=name)

    @property
    def notes(self) -> str:
        return self._run.about.notes

    @notes.setter
    def notes(self, notes: str) -> None:
        self._run.update(notes=notes)

    @property
    def tags(self) -> tuple[str, ...]:
        return self._run.about.tags

    @tags.setter
    def tags(self, tags: Iterable[str]) -> None:
        self._run.update(tags=tags)

    # --- what it logs

    def log(self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None) -> None:
        """Without a step each call is a step of its own, unless `commit` is False; with one, that step stays the
        current one. What is logged is sent at once: nothing waits for a commit, and so nothing is lost before it."""
        if step is not None:
            try:
                self.step = whole_step(step)
            except Unfit:
                self._run.log(data, step)  # counts it and says why
                return
        self._keep(data)
        if commit or (commit is None and step is None):
            self.step += 1

    def _keep(self, data: Mapping[str, Any]) -> None:
        try:
            values = {str(name): value for name, value in flat(data)}
        except Exception:  # no dict at all, or one of somebody's own: Strata counts it and says why
            self._run.log(data, self.step)
            return
        by_step, odd = self._rules.split(values, self.step)
        for metric in odd:
            note(metric, "a step metric that is no whole number; its metrics are drawn over the run's own steps")
        for at, part in by_step.items():
            self._run.log(part, at)
        numbers = {name: value for name, value in values.items() if media_of(value) is None}
        self.summary.noted({name: value for name, value in numbers.items() if not isinstance(value, Text)})

    def define_metric(
        self,
        name: str,
        step_metric: str | None = None,
        step_sync: bool | None = None,
        hidden: bool | None = None,
        summary: str | None = None,
        goal: str | None = None,
        overwrite: bool | None = None,
    ) -> None:
        """A metric with a step metric is logged at the newest value of that, where it is a whole number. Last, lowest
        and highest value of every metric are kept whatever `summary` says."""
        self._rules.define(name, step_metric)
        if summary and not set(summary.split(",")) <= {"last", "min", "max", "best", "copy", "none"}:
            note(f"summary={summary!r}", "the summary holds last, min and max; set others with run.summary[...]")

    def watch(
        self,
        models: Any,
        criterion: Any = None,
        log: What | None = "gradients",
        log_freq: int = 1000,
        idx: int | None = None,
        log_graph: bool = False,
    ) -> None:
        """Histograms of gradients or parameters while the model is trained."""
        for model in models if isinstance(models, list | tuple) else (models,):
            if log is not None and id(model) not in self._watches:
                self._watches[id(model)] = Watch(model, self._keep, log, log_freq)

    def unwatch(self, models: Any = None) -> None:
        wanted = None if models is None else models if isinstance(models, list | tuple) else (models,)
        for key in list(self._watches) if wanted is None else [id(model) for model in wanted]:
            if key in self._watches:
                self._watches.pop(key).stop()

    def alert(self, title: str, text: str = "", level: Any = "INFO", wait_duration: Any = None) -> None:
        """A line of that level in the run's log."""
        known = _LEVELS.get(str(getattr(level, "value", level) or "INFO").upper(), "info")
        self._run.reporter.add_line(known, f"{title}: {text}" if text else title)

    def write_logs(self, text: str) -> None:
        self._run.reporter.add_line("info", text)

    # --- what it keeps

    def save(
        self, glob_str: str | None = None, base_path: str | None = None, policy: str = "live", **_: Any
    ) -> list[str]:
        """Copies the files that are there now into the run's folder."""
        if glob_str is None:
            return []
        if policy == "live":
            note("save(policy='live')", "files are copied as they are now, and not again when they change")
        return [str(path) for path in self._counted(glob_str, lambda: self._files.copy_all(glob_str, base_path)) or ()]

    def log_artifact(
        self,
        artifact_or_path: Any,
        name: str | None = None,
        type: str | None = None,  # noqa: A002 - wandb's word
        aliases: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> Artifact:
        """Copies its files into the run's folder, and logs what it is and where."""
        artifact = as_artifact(artifact_or_path, name, type)
        artifact.aliases = list(aliases or ("latest",))
        kept = self._counted(artifact.name, lambda: artifact.keep(self._files))
        if kept is not None:
            about = {name: getattr(artifact, name) for name in ("type", "description", "metadata", "aliases")}
            self._keep({f"artifact/{artifact.name}": Text(kind="artifact", text=value_json({**about, "files": kept}))})
        return artifact

    def log_model(self, path: str, name: str | None = None, aliases: Iterable[str] | None = None) -> None:
        self.log_artifact(path, name or f"model-{self.id}", "model", aliases)

    def log_code(self, root: str = ".", name: str | None = None, **_: Any) -> Artifact:
        """The Python files below a folder, as they are now."""
        code = Artifact(name or f"source-{self.id}", "code")
        for file in sorted(Path(root).rglob("*.py")):
            if not any(part.startswith(".") for part in file.relative_to(root).parts):
                code.add_file(str(file), file.relative_to(root).as_posix())
        return self.log_artifact(code)

    def _counted(self, name: str, keep: Callable[[], Any]) -> Any:
        try:
            return keep()
        except OSError as error:  # a full disk must not end a training
            self._run.reporter.refuse(f"file {shown(name)}", f"it cannot be kept: {error}")
            return None

    # --- how it ends

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        self._close()
        self._run.finish(exit_code or 0)

    def _close(self) -> None:
        self.unwatch()
        count, num_bytes = self._counted("files", self._files.totals) or (0, 0)
        if count:
            self._run.summary.update({"strata/files": count, "strata/file_bytes": num_bytes})

    def mark_preempting(self) -> None:
        note("mark_preempting", "a task of Strata knows by itself when its host goes away")

    def status(self) -> dict[str, Any]:
        return {"dropped": self._run.dropped, "offline": self.offline}

    def __exit__(self, *raised: Any) -> None:
        self._close()
        self._run.__exit__(*raised)

    def __getattr__(self, name: str) -> Any:
        raise refusal(f"Run.{name}") or AttributeError(f"a run has no {name!r}")

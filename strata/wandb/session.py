"""`wandb.init` and the one run of this process."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from strata.errors import InvalidArgument, Refused
from strata.wandb.disabled import DisabledRun
from strata.wandb.notes import note
from strata.wandb.surface import NOTED_ARGUMENTS
from strata.wandb.wandb_config import chosen
from strata.wandb.wandb_run import Run
from strata.worker import run as runs
from strata.worker.description import check_arguments, config_of

__all__ = ["current", "init", "needed"]

_current: Run | DisabledRun | None = None
_MODES = ("online", "offline", "disabled", "shared")
_ARGUMENTS = (
    *("project", "name", "id", "config", "tags", "group", "job_type", "notes", "resume", "mode", "reinit"),
    *("config_exclude_keys", "config_include_keys", "resume_from", "fork_from"),
    *NOTED_ARGUMENTS,
)


def init(
    entity: str | None = None,
    project: str | None = None,
    dir: Any = None,  # noqa: A002 - wandb's word
    id: str | None = None,  # noqa: A002 - wandb's word
    name: str | None = None,
    notes: str | None = None,
    tags: Iterable[str] | None = None,
    config: Any = None,
    config_exclude_keys: Iterable[str] | None = None,
    config_include_keys: Iterable[str] | None = None,
    group: str | None = None,
    job_type: str | None = None,
    mode: str | None = None,
    reinit: Any = None,
    resume: bool | str | None = None,
    resume_from: str | None = None,
    fork_from: str | None = None,
    **more: Any,
) -> Run | DisabledRun:
    """As wandb.init: a second call gives the same run, with `reinit` a new one after the first is finished."""
    global _current  # one process, one run
    check_arguments("wandb.init", {key: 0 for key in more if key not in NOTED_ARGUMENTS}, _ARGUMENTS)
    if resume_from or fork_from:
        raise Refused(
            "a run does not go on from the midst of another one yet", hint="resume=True goes on after its end."
        )
    for argument, value in {"entity": entity, "dir": dir, **more}.items():
        if value is not None and value is not False:
            note(f"wandb.init({argument}=…)", NOTED_ARGUMENTS[argument])
    if _current is not None and not _current.is_over:
        if not reinit or reinit == "return_previous":
            return _current
        _current.finish()
    if _mode(mode) == "disabled":
        _current = DisabledRun(config_of(config))
        return _current
    if isinstance(config, str):
        raise InvalidArgument(f"config is the path {config!r}", hint="Read the file and give a dict.")
    wanted_id = id or os.environ.get("WANDB_RUN_ID")
    run = runs.init(
        project=project or os.environ.get("WANDB_PROJECT", "uncategorized"),
        name=name or os.environ.get("WANDB_NAME", ""),
        config=chosen(config_of(config), config_include_keys, config_exclude_keys),
        tags=tags if tags is not None else _words(os.environ.get("WANDB_TAGS", "")),
        group=group or os.environ.get("WANDB_RUN_GROUP", ""),
        job_type=job_type or os.environ.get("WANDB_JOB_TYPE", ""),
        notes=notes or os.environ.get("WANDB_NOTES", ""),
        run_id=wanted_id,
        resume=_resume(resume or os.environ.get("WANDB_RESUME"), wanted_id),
    )
    _current = Run(run, run.resumed)
    return _current


def current() -> Run | DisabledRun | None:
    """None before init and after finish."""
    return None if _current is None or _current.is_over else _current


def needed(what: str) -> Run | DisabledRun:
    run = current()
    if run is None:
        raise InvalidArgument(f"there is no run for wandb.{what}", hint="Call wandb.init() first.")
    return run


def _mode(mode: str | None) -> str:
    chosen_mode = mode or os.environ.get("WANDB_MODE") or "online"
    if chosen_mode not in _MODES:
        raise InvalidArgument(f"mode is {chosen_mode!r}", hint=f"One of {', '.join(_MODES)}.")
    if chosen_mode == "offline":
        note("mode='offline'", "points are kept on disk and sent by themselves to an observatory that is there")
    return chosen_mode


def _resume(resume: bool | str | None, run_id: str | None) -> bool | str | None:
    """wandb's `auto` finds the id by itself; here a task does, and a script names it."""
    if resume in (True, "auto", "True", "true", "1"):
        if run_id:
            return True
        note("resume", "give the run's id, or run the script as a task: `strata run` goes on by itself")
        return None
    return resume


def _words(text: str) -> Mapping[str, None]:
    return dict.fromkeys(word.strip() for word in text.split(",") if word.strip())

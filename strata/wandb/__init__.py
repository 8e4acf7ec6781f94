"""`import strata.wandb as wandb`: scripts written for wandb run unchanged, and log to Strata."""

import sys
from typing import Any

from strata import __version__
from strata.errors import StrataError as Error
from strata.wandb.artifact import Artifact
from strata.wandb.notes import note
from strata.wandb.session import current, init, needed
from strata.wandb.surface import refusal
from strata.wandb.wandb_run import Run
from strata.worker.media.document import Html
from strata.worker.media.file import File
from strata.worker.media.histogram import Histogram
from strata.worker.media.image import Image
from strata.worker.media.table import Table

__all__ = [
    "Artifact",
    "Audio",
    "Error",
    "EvalTable",
    "Graph",
    "Histogram",
    "Html",
    "Image",
    "Molecule",
    "Object3D",
    "Plotly",
    "Run",
    "Settings",
    "Table",
    "Video",
    "__version__",
    "box3d",
    "finish",
    "init",
    "login",
    "setup",
    "teardown",
    "termerror",
    "termlog",
    "termsetup",
    "termwarn",
]

EvalTable = Table
Audio = Graph = Molecule = Object3D = Plotly = Video = box3d = File
# Functions of the run that are the module's, too.
_OF_THE_RUN = frozenset(
    {"define_metric", "log", "log_artifact", "log_model", "save", "unwatch", "watch", "config", "summary", "alert"}
)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    run = current()
    if run is not None:
        run.finish(exit_code)


def teardown(exit_code: int | None = None) -> None:
    finish(exit_code)


def login(*_: Any, **__: Any) -> bool:
    note("wandb.login", "there is no account; the token of the cluster says who you are")
    return True


def setup(*_: Any, **__: Any) -> None:
    """Nothing is to be set up."""


termsetup = setup


def termlog(string: str = "", newline: bool = True, **_: Any) -> None:
    sys.stderr.write(f"wandb: {string}" + ("\n" if newline else ""))


termwarn = termerror = termlog


class Settings:
    """Taken and not used: Strata's settings are in docs/configuration.md."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


def __getattr__(name: str) -> Any:
    if name == "run":
        return current()
    if name in _OF_THE_RUN:
        return getattr(needed(name), name)
    raise refusal(name) or AttributeError(f"module 'strata.wandb' has no attribute {name!r}")

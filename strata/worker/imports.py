"""What this rank has imported, left for its agent: spares of the task import the same before they are needed."""

import json
import logging
import os
import sys
import sysconfig
import time
from pathlib import Path
from types import ModuleType

from strata.worker.environment import Place

__all__ = ["Imports"]

_log = logging.getLogger(__name__)

_PATIENCE_S = 10.0  # for a first step


class Imports:
    """Notes them after the first step and when there are more. A task without spares costs nothing."""

    def __init__(self, place: Place) -> None:
        self._wanted = bool(place.task_id and os.environ.get("STRATA_SPARES") and place.local_rank == 0)
        self._attempt = place.attempt
        self._file = place.data_dir / "agent" / "imports" / f"{place.task_id}.json"
        self._began = time.monotonic()
        self._noted = 0

    def look(self, step: int) -> None:
        """Called at every beat."""
        count = len(sys.modules)
        if not self._wanted or count == self._noted:
            return
        if step or time.monotonic() - self._began > _PATIENCE_S:
            self._noted = count
            self._note()

    def _note(self) -> None:
        staged = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            staged.write_text(json.dumps({"attempt": self._attempt, "modules": importable()}))
            staged.replace(self._file)
        except OSError as error:
            self._wanted = False
            _log.warning("what this rank imports cannot be noted, so its task has no spares here: %s", error)


def importable() -> list[str]:
    """The modules of Python and of installed packages, in the order of their import. The user's own are not among them:
    they may be changed before the next attempt, and to import them may do something."""
    folders = tuple(f"{folder}{os.sep}" for folder in _installed())
    return [name for name, module in list(sys.modules.items()) if _is_installed(name, module, folders)]


def _is_installed(name: str, module: ModuleType, folders: tuple[str, ...]) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name != name or spec.loader is None:
        return False
    return spec.origin in ("built-in", "frozen") or bool(spec.origin and spec.origin.startswith(folders))


def _installed() -> set[str]:
    """Where Python and installed packages lie, Strata itself included."""
    paths = sysconfig.get_paths()
    packages = {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return packages | {paths["stdlib"], paths["platstdlib"], str(Path(__file__).parents[1])}

"""Artifact: named files that belong together, copied into the run's folder when they are logged."""

from pathlib import Path
from typing import Any

from strata.errors import InvalidArgument
from strata.types.names import check_name
from strata.wandb.files import RunFiles
from strata.worker.media.base import Media
from strata.worker.points import Unfit

__all__ = ["Artifact", "as_artifact"]


class Artifact:
    """Collects what is to be copied. `wait` and the like return at once: a copy is there when log_artifact returns."""

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002 - wandb's word
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        self.name = check_name("artifact", name)
        self.type = type
        self.description = description
        self.metadata = dict(metadata or {})
        self.aliases: list[str] = []
        self._sources: dict[str, Path | bytes] = {}

    def add_file(self, local_path: str, name: str | None = None, **_: Any) -> None:
        if not Path(local_path).is_file():
            raise InvalidArgument(f"{local_path!r} is no file", hint="add_dir takes folders.")
        self._sources[name or Path(local_path).name] = Path(local_path)

    def add_dir(self, local_path: str, name: str | None = None, **_: Any) -> None:
        for file in sorted(Path(local_path).rglob("*")):
            if file.is_file():
                within = file.relative_to(local_path).as_posix()
                self._sources[f"{name}/{within}" if name else within] = file

    def add(self, obj: Media, name: str, **_: Any) -> None:
        """Its file under this name, and beside it what a table's cells hold."""
        try:
            entry = obj.entry()
        except Unfit as error:
            raise InvalidArgument(f"{name!r} {error}") from None
        *cells, (last, content) = entry.files.items() or [(".json", entry.text.encode())]
        self._sources |= {**dict(cells), f"{name}.{last.rpartition('.')[2]}": content}

    def add_reference(self, uri: str, name: str | None = None, **_: Any) -> None:
        """Noted by its address; nothing is fetched."""
        self._sources[f"{name or 'reference'}.uri"] = str(uri).encode()

    def wait(self, timeout: float | None = None) -> "Artifact":
        return self

    def keep(self, files: RunFiles) -> list[str]:
        """Copies everything; returns the names below the run's folder."""
        kept = []
        for name, source in self._sources.items():
            target = f"artifacts/{self.name}/{name}"
            if isinstance(source, bytes):
                files.write(target, source)
            else:
                files.copy(source, target)
            kept.append(target)
        return kept


def as_artifact(given: Any, name: str | None, type: str | None) -> Artifact:  # noqa: A002 - wandb's word
    """An artifact, or the file or folder of a path as one."""
    if isinstance(given, Artifact):
        return given
    path = Path(given)
    if not path.exists():
        raise InvalidArgument(f"there is nothing at {str(given)!r} to keep")
    made = Artifact(name or path.name, type or "unspecified")
    if path.is_dir():
        made.add_dir(str(path))
    else:
        made.add_file(str(path))
    return made

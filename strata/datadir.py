"""The data folder: journal, spool, token and logs of one installation, for its owner's eyes only."""

import logging
import os
import re
import stat
from pathlib import Path

from strata.errors import InvalidConfig

__all__ = ["nearest_folder", "network_file_system", "open_data_dir", "write_private"]

_log = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre"})
_FOLDERS = "agent|checkpoints|coordinator|demo|files|fleets|logs|metrics|observatory|offline|restored|spool|tls"
_FILES = r"token|store\.lock|strata\.lock|(agent|alert-deliveries|alert-rules|coordinator|endpoints|observatory)\.json"
_LOGS = r"(strata|agent|coordinator|observatory)\.log"  # where people send what it says
_OURS = re.compile(f"{_FOLDERS}|{_FILES}|{_LOGS}")


def open_data_dir(folder: Path) -> None:
    """Creates the folder with mode 0700 if need be. A folder that others may enter is closed to them when it holds
    nothing but our files. Otherwise a warning says so, because it may be a home or a scratch folder that others need.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_mode & _OTHERS:
            _close(folder)
    except OSError as error:
        raise InvalidConfig(
            f"the data folder {folder} cannot be used: {error.strerror}",
            hint="Give a folder you may write to with --data-dir.",
        ) from None


def _close(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid == os.geteuid() and all(_OURS.fullmatch(entry.name) for entry in folder.iterdir()):
        folder.chmod(0o700)
        return
    text = "other users may enter the data folder %s (mode %o): its files may hold keys; use one of your own, mode 0700"
    _log.warning(text, folder, stat.S_IMODE(found.st_mode))


def nearest_folder(path: Path) -> Path:
    """The path, or what is there of the way to it: whose rights decide whether it can be made."""
    return next((each for each in (path, *path.parents) if os.access(each, os.F_OK)), path)


def network_file_system(folder: Path) -> str:
    """The kind of network file system that holds the folder; empty when it is on a disk of this machine."""
    resolved = os.fspath(folder.resolve())
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [
        (point, kind) for point, kind in mounts if resolved == point or resolved.startswith(f"{point.rstrip('/')}/")
    ]
    _, kind = max(holding, key=lambda item: len(item[0]), default=("", ""))
    return kind if kind in _NETWORK_FILE_SYSTEMS else ""


def write_private(path: Path, text: str) -> None:
    """A file that only its owner can read, whole or as it was before."""
    staged = path.with_suffix(".part")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
